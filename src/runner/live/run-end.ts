import type { BaseEvent, RunFinishedEvent } from "@ag-ui/client";
import { messageOf } from "../../run/errors.js";
import type { AskedStatus, RunLife } from "../../run/life.js";
import type { RunErrorCode } from "../../run/run-error-codes.js";
import { BrokenConnection } from "../agent/agent-pipeline.js";
import { InvalidStream } from "../agent/valid-stream.js";
import type { OrphanEnd } from "../claim/recovery.js";

/*
 * How a run ends (L7): as its agent said (L18), unless it was asked to end before (L12).
 */

/** `terminal`: the agent's own terminal event; without one it is made. `thrown`: the agent's error, for the logger. */
export type RunEnd =
  | { readonly status: "finished" | "stopped" | "errored"; readonly terminal: BaseEvent; readonly isReturn?: boolean }
  | { readonly status: "stopped" | "superseded" | "broken"; readonly message?: string }
  | { readonly status: "errored"; readonly message: string; readonly code: RunErrorCode; readonly thrown?: unknown };

/** The end of a run that was asked to end and did not end itself. */
export const endAsAsked = (as: AskedStatus): RunEnd =>
  as === "errored"
    ? { status: as, message: "The run took longer than it may (maxRunMs)", code: "RUN_TIMEOUT" }
    : { status: as };

const CUT_OFF = "The agent's stream ended without RUN_FINISHED or RUN_ERROR";

/** The end of a run whose agent's stream ended without a terminal event (L18). */
export const endOfStream: RunEnd = { status: "errored", message: CUT_OFF, code: "INCOMPLETE_STREAM" };

/** The end of a run whose agent threw, or whose stream is invalid. */
export function endOfFailure(thrown: unknown): RunEnd {
  const failed = { status: "errored", message: messageOf(thrown), thrown } as const;
  if (thrown instanceof InvalidStream) return { ...failed, code: "INVALID_STREAM" };
  if (!(thrown instanceof BrokenConnection)) return { ...failed, code: "AGENT_FAILED" };
  return { ...failed, message: `${CUT_OFF}: ${failed.message}`, code: "INCOMPLETE_STREAM" };
}

/**
 * The end of a run whose agent emitted RUN_FINISHED.
 *
 * @param isReturn a generator of `defineAgent` returned, without a RUN_FINISHED of its own
 */
export const endOfFinish = (terminal: RunFinishedEvent, isReturn: boolean): RunEnd => ({
  status: terminal.outcome?.type === "cancelled" ? "stopped" : "finished",
  terminal,
  isReturn,
});

/** A stopping run ends as it was asked to, whatever its agent says (L12), unless the agent itself reports the stop. */
export function decidedEnd(life: RunLife, end: RunEnd, isAskedRun: boolean): RunEnd {
  if (life.is !== "stopping") return end;
  const reportsStop = isAskedRun && life.as === "stopped" && end.status === "stopped" && "terminal" in end;
  return reportsStop ? end : endAsAsked(life.as);
}

/** How a run ends if its host cannot write the end: as it was asked to end, else as broken. */
export function endWithoutHost(life: RunLife): OrphanEnd {
  const asked = life.is === "stopping" ? life.as : life.is === "settling" ? life.status : undefined;
  return asked === "stopped" || asked === "superseded" ? asked : "broken";
}
