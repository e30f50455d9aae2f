import type { Message } from "@ag-ui/client";
import type { Attempt } from "../run/hosted.js";
import type { WaitingError } from "../run/types.js";
import type { OnBusy, RunRequest } from "./shapes.js";

/* What crosses of runs that wait for their turn. */

/** A run that is to wait where it cannot begin at once. */
export interface EnqueueRequest {
  /** Its `onBusy` does not count. */
  readonly run: RunRequest;
  /** What to do while another run of the thread is live, or others wait: only `queue` waits. */
  readonly onBusy: OnBusy;
  /** What to do while its agent needs the network and there is none. */
  readonly whenOffline: WhenOffline;
}

/** What becomes of a run of an agent that needs the network while there is none: refused as `offline`, or it waits in the log. */
export type WhenOffline = "fail" | "wait";

/**
 * `began`: it runs, or has run. `waits`: it is in the log, and starts by itself. `free`: nothing was done, because it is in no
 * log; the tab runs it.
 */
export type Enqueued = "began" | "waits" | "free";

/** A run that waits for its turn, in whichever tab it was asked for. */
export interface WaitingRun {
  readonly threadId: string;
  /** The id that its run will have. */
  readonly runId: string;
  readonly agentId: string;
  /** The messages that it adds to the thread. */
  readonly messages: readonly Message[];
  /** Since when it waits, in ms since the Unix epoch. */
  readonly since: number;
  readonly reason: WaitingReason;
  /** Of a run that goes on with one that broke. */
  readonly attempt?: Attempt;
}

/**
 * Why a run waits.
 * - `behind`: others of the thread wait before it.
 * - `busy`: the run `runId` is live.
 * - `interrupts`: the thread waits for answers of a person (`respond`), which go on first.
 * - `tool-calls`: results of front-end tools are awaited, and go on first.
 * - `offline`: its agent needs the network.
 * - `headers`: its agent needs these (`AgentPolicy.needsHeaders`), and no connected tab has called with them.
 * - `retry`: it could not start, or has to wait; it is tried again at the time `at` (ms since the Unix epoch).
 * - `failed`: it cannot start. It stays first until somebody moves, cancels or retries it.
 * - `starting`: it is its turn.
 */
export type WaitingReason =
  | { readonly is: "behind" }
  | { readonly is: "busy"; readonly runId: string }
  | { readonly is: "interrupts"; readonly interruptIds: readonly string[] }
  | { readonly is: "tool-calls" }
  | { readonly is: "offline" }
  | { readonly is: "headers"; readonly names: readonly string[] }
  | { readonly is: "retry"; readonly at: number }
  | { readonly is: "failed"; readonly error: WaitingError }
  | { readonly is: "starting" };

/** Names a waiting run. */
export interface NamedWaiting {
  readonly threadId: string;
  readonly runId: string;
}

/** Puts a waiting run before another one of its thread; null: at the end. */
export interface WaitingMove extends NamedWaiting {
  readonly before: string | null;
}
