import { z } from "zod";

const content = z.object({ steps: z.array(z.string()), done: z.number() });

/** User interface that the agent writes by itself: an activity, changed by patches while it works. */
export const progress = {
  activityType: "progress",
  content,
  render: ({ content: { steps, done } }: { content: z.infer<typeof content> }) => (
    <ol className="card" aria-label="Progress">
      {steps.map((step, at) => (
        <li key={step}>
          {step}: {at < done ? "done" : "waiting"}
        </li>
      ))}
    </ol>
  ),
};
