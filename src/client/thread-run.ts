import type { SettledStatus } from "../run/types.js";
import { defined } from "../platform/defined.js";
import { RunnerError, type RunnerErrorDetails } from "../run/errors.js";
import type { Attempt } from "../run/hosted.js";
import type { RunRecovery } from "../run/recovery.js";

/** Why a run failed. */
export interface RunFailure {
  readonly message: string;
  /** The code of its RUN_ERROR, if there is one; of a RunnerError if its end cannot be written. */
  readonly code?: string;
  readonly details?: RunnerErrorDetails;
}

/** The thread's run as an agent knows it. */
export type ThreadRun =
  | {
      readonly is: "idle";
      readonly last?: {
        readonly runId: string;
        readonly status: SettledStatus;
        /** Of an errored or broken run: its RUN_ERROR, or why its end cannot be written yet. */
        readonly error?: RunFailure;
        /** Of an errored or broken run: what becomes of it, where its agent's policy recovers runs. Only while following. */
        readonly recovery?: RunRecovery;
      };
      /** Why what this agent showed no longer exists: `unknown-thread` (it was deleted), `storage-deleted`. */
      readonly gone?: RunFailure;
    }
  | {
      readonly is: "running";
      readonly runId: string;
      readonly runIndex: number;
      /** It goes on with a run that broke. */
      readonly attempt?: Attempt;
      /** The name of the other device that executes it; absent: this one. */
      readonly device?: string;
    };

/** Refuses a run beside the live one. */
export const busyWith = (
  threadId: string,
  { runId, device }: Partial<Extract<ThreadRun, { readonly is: "running" }>>,
): RunnerError => new RunnerError("thread-busy", { threadId, ...defined({ runId, device }) });
