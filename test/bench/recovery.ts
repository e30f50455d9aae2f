import type { Context } from "./context.js";
import { deaths } from "./faults.js";
import { figure } from "./figures.js";

const WORDS = 10;

/** How long a reader waits until a broken answer goes on by itself. */
export async function recovery({ lab, quick, figures }: Context): Promise<void> {
  const more = { moreThan: WORDS };
  const { runs, follows } = await deaths(
    { lab, words: WORDS, follower: "same host", agentId: "recovering", next: [more, more] },
    quick ? 5 : 30,
  );
  const group = "recovery: the only host dies, the answer goes on by itself, backoff 0";
  for (const [seen, where] of [
    [runs, "tab that ran"],
    [follows, "tab that followed"],
  ] as const) {
    figures.push(
      figure(
        group,
        `death → new text of the attempt, ${where}`,
        "ms",
        seen.map(({ text }) => text!),
      ), // waited for
      figure(
        group,
        `of it: RUN_BROKEN → new text, ${where}`,
        "ms",
        seen.map(({ text, first }) => text! - first),
      ),
    );
  }
  const fallen = [...runs, ...follows].map((it) => it.fallen);
  figures.push(figure(group, "of it: death → life lock falls", "ms", fallen));
}
