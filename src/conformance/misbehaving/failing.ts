import { EventType } from "@ag-ui/core";
import { say } from "../good-agents.js";
import { scriptedAgent } from "../scripted-agent.js";
import { afterAnswer, agents, answer, SAID } from "./agent.js";

/** Agents that fail or end before they have properly begun, or in the middle of an activity. */
export const FAILING = agents([
  {
    name: "throws-in-run",
    does: "throws in run() instead of returning an Observable",
    ends: EventType.RUN_ERROR,
    make: () => scriptedAgent(() => {}, { throwsInRun: true }),
  },
  {
    name: "throws-before-first-event",
    does: "throws while it is subscribed to, before its first event",
    ends: EventType.RUN_ERROR,
    make: () =>
      scriptedAgent(() => {
        throw new Error("boom");
      }),
  },
  {
    name: "errors-before-first-event",
    does: "fails some time later, before its first event",
    ends: EventType.RUN_ERROR,
    make: () =>
      scriptedAgent(async () => {
        await Promise.resolve();
        throw new Error("boom");
      }),
  },
  {
    name: "errors-in-activity",
    does: "fails after an activity that it was going to go on with",
    ends: EventType.RUN_ERROR,
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        const messageId = `${input.runId}-activity`;
        emit(
          say.started(input),
          { type: EventType.ACTIVITY_SNAPSHOT, messageId, activityType: "plan", content: { done: 0 } },
          {
            type: EventType.ACTIVITY_DELTA,
            messageId,
            activityType: "plan",
            patch: [{ op: "replace", path: "/done", value: 1 }],
          },
        );
        await Promise.resolve();
        throw new Error("boom");
      }),
  },
  {
    name: "completes-with-nothing",
    does: "completes without a single event",
    make: () => scriptedAgent(() => {}),
  },
  {
    name: "completes-without-run-started",
    does: "answers and completes without RUN_STARTED",
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        emit(...answer(input));
        await Promise.resolve();
        emit(say.finished(input));
      }),
  },
  {
    name: "completes-without-terminal",
    does: "answers and completes without a terminal event",
    keeps: SAID,
    make: afterAnswer(),
  },
]);
