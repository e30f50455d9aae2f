import { RunnerError } from "../../run/errors.js";
import { isContinuing, type Attempt } from "../../run/hosted.js";
import type { InputPlan, ThreadBase } from "../../run/input-plan.js";
import { equalJson } from "../../run/json.js";
import { forgetBefore } from "../../run/live-prelude.js";
import { messagesSnapshot } from "../../run/prelude.js";
import { brokenRunOf } from "../history/broken-run.js";
import type { PlacedRequest } from "../request.js";
import type { RunnerContext } from "./recovery.js";

/*
 * How a run starts that goes on with a broken one. Loaded when one does.
 */

/**
 * @param base the thread at the end of its path
 * @throws RunnerError `cancelled` where the thread went on without the attempt
 */
export async function planAttempt(
  { parts, history }: Pick<RunnerContext, "parts" | "history">,
  { threadId, agent, input: { runId } }: PlacedRequest,
  attempt: Attempt,
  base: ThreadBase,
): Promise<InputPlan> {
  const broken = await brokenRunOf(parts.store, history.log, threadId, base, attempt.of);
  if (broken === undefined) {
    throw new RunnerError("cancelled", { threadId, runId }, { message: "The thread went on without this attempt" });
  }
  const { messages, said } = broken.startFor({ continues: isContinuing(agent) });
  // Each reader sees one answer (L2): what the end of the broken run has added, or what is said anew, goes.
  const snapshot = equalJson(messages, base.messages)
    ? []
    : [...forgetBefore(base.messages, messages, runId), messagesSnapshot(messages)];
  return { is: "attempt", newMessages: [], messages: () => messages, snapshot, said };
}
