import type { Attempt } from "../run/hosted.js";
import type { RecoveryNote } from "../run/recovery.js";
import type { WaitingError } from "../run/types.js";

interface Waiting {
  readonly threadId: string;
  /** The id that its run will have. */
  readonly runId: string;
  readonly agentId: string;
  /** When it was added. */
  readonly since: number;
  /** It must not start earlier. */
  readonly notBefore?: number;
  readonly attempt?: Attempt;
  /** It could not be started, and waits until somebody tries it again, moves or cancels it. */
  readonly error?: WaitingError;
}

/** Asked for by a caller. `request` is a payload: its form is that of whoever added it. */
export interface AskedWaiting extends Waiting {
  readonly kind: "run";
  readonly request: unknown;
}

/** Goes on with the broken run `of`. It has no payload: any host can add it without reading content. */
export interface RecoveryWaiting extends Waiting {
  readonly kind: "recovery";
  /** `runId` of the broken run. */
  readonly of: string;
  /** `runIndex` of the broken run. */
  readonly ofIndex: number;
}

/** A run to be added to those that wait. */
export type NewWaiting = AskedWaiting | RecoveryWaiting;

/** A waiting run with its place: ascending within the thread, changed by moves. */
export type WaitingRow = NewWaiting & { readonly position: number };

export type Added =
  | { readonly is: "added" }
  /** A run with this id waits already. Nothing was added. */
  | { readonly is: "waits" }
  /** A run with this id is in the log. Nothing was added. */
  | { readonly is: "exists" }
  /** As many wait as may. Nothing was added. */
  | { readonly is: "full" };

/** What is changed of a waiting run; null removes the field. */
export interface WaitingUpdate {
  readonly notBefore?: number | null;
  readonly error?: WaitingError | null;
}

/**
 * The outbox: runs that wait for their turn, in order within their thread, whether or not the thread exists yet.
 *
 * - Every operation must be one atomic transaction, idempotent like all writes of the store; what it acknowledges must
 *   survive power loss.
 * - A run must never be both waiting and in the log: `addWaiting` checks the log, and the claim that starts the run
 *   removes it from those that wait (`ClaimRequest.waiting`).
 * - The order must be total. New runs are added at the end; recoveries, which the store adds with the end of the broken
 *   run, at the front.
 * - Deleting a thread must delete them. They must keep their thread from eviction (`threadsBeyond`).
 * - An invalid record must be listed with the error `corrupt-record`, if its run id can be read: it can then be removed.
 */
export interface WaitingStore {
  /**
   * @param most how many may wait in the thread
   * @param answer the fingerprint of a run that answers another one: a run with its id and another fingerprint is that one
   */
  addWaiting(run: AskedWaiting, most: number, answer?: string): Promise<Added>;
  /** The thread's waiting runs in order, at most `limit`. */
  waitingRuns(threadId: string, limit?: number): Promise<readonly WaitingRow[]>;
  isWaiting(threadId: string, runId: string): Promise<boolean>;
  /** Ids of the threads in which runs wait. */
  waitingThreads(): Promise<readonly string[]>;
  /**
   * Puts a waiting run before another one of its thread; null: at the end.
   *
   * @returns false, nothing changed, if one of them does not wait
   */
  moveWaiting(threadId: string, runId: string, before: string | null): Promise<boolean>;
  /** @returns false, nothing changed, if it does not wait */
  removeWaiting(threadId: string, runId: string): Promise<boolean>;
  /**
   * Removes a recovery from those that wait, and writes into the row of the broken run (`ofIndex`) why it does not go on by
   * itself. Without a note: the thread went on.
   *
   * @returns false, nothing changed, if it does not wait
   */
  endRecovery(recovery: RecoveryWaiting, note: RecoveryNote | undefined): Promise<boolean>;
  /** Removes all of a thread. */
  clearWaiting(threadId: string): Promise<void>;
  /** @returns false, nothing changed, if it does not wait */
  updateWaiting(threadId: string, runId: string, update: WaitingUpdate): Promise<boolean>;
}

/** The position of a run that is added at the front. */
export const positionAtFront = (first: number | undefined): number => (first === undefined ? 0 : Math.ceil(first) - 1);

/** Whether a claim may start a run: `gone` where it waited and does not any more, `behind` where another one goes first. */
export type Turn = "first" | "behind" | "gone";

/** What the claim of a run says about those that wait. */
export interface TurnRequest {
  readonly runId: string;
  /** It is the first of the thread's waiting runs, and is removed from them in the same transaction. */
  readonly waiting?: boolean;
  /** Waiting runs of the thread go first: it is `behind` while any wait. */
  readonly afterWaiting?: boolean;
}

/** @param firstRunId of the waiting runs */
export function turnOf(
  { runId, waiting, afterWaiting }: TurnRequest,
  waits: boolean,
  firstRunId: string | undefined,
): Turn {
  if (waiting === true) return !waits ? "gone" : firstRunId === runId ? "first" : "behind";
  return afterWaiting === true && firstRunId !== undefined ? "behind" : "first";
}
