import type { Chunk, SettledStatus } from "../run/types.js";
import type { LeftByRun } from "./pending-tool-calls.js";
import type {
  Claim,
  ClaimRequest,
  DeviceName,
  Derived,
  NamedRun,
  RunClosing,
  RunRow,
  ThreadHead,
  ThreadRow,
} from "./rows.js";

export type { DeviceName, NamedRun } from "./rows.js";

/** A run that another device has executed, whole. */
export interface PlacedRun extends Pick<
  ClaimRequest,
  | "threadId"
  | "agentId"
  | "parentRunId"
  | "startedAt"
  | "prevRunIndex"
  | "input"
  | "fingerprint"
  | "answerId"
  | "title"
  | "attempt"
> {
  readonly runId: string;
  readonly device: DeviceName;
  readonly status: SettledStatus;
  readonly endedAt: number;
  /** See {@link ClaimRequest}. Absent: at `endedAt`. */
  readonly listedAt?: number;
  readonly closedFrom?: number;
  /** All of its events, from seq 0, at least one. The store puts its own `runIndex` and `epoch`. */
  readonly chunks: readonly Chunk[];
  readonly closing: RunClosing;
  readonly derived: Derived;
  readonly bytes: number;
  /** The tool calls that it leaves to the front end. */
  readonly left?: LeftByRun | undefined;
  /** The run becomes the end of the active path. */
  readonly activates: boolean;
}

/** How a thread is listed whose runs have not come yet. */
export type AbsentThread = Pick<
  ThreadRow,
  "threadId" | "title" | "agentId" | "archived" | "pinned" | "createdAt" | "updatedAt" | "lastStatus"
>;

/**
 * Runs of other devices, in the log of this one. A run that is followed while it goes on is claimed with `device`, appended
 * to and settled like any other; these are the operations that no run of this device needs.
 *
 * - Each must be one atomic transaction, idempotent like all writes of the store; what it acknowledges must survive power
 *   loss.
 * - None must take the thread from a live run: its claim stands, and what it continues stays as it was.
 * - Where events change that a reader may have seen, the row of the run, and that of the active run if this is a later one,
 *   must say so by `revised`, under an epoch newer than any of theirs: readers then take a new snapshot (L2).
 * - A run whose events were deleted or cut off must stay as it is.
 */
export interface DeviceStore {
  /** Several runs may have the id. */
  runNamed(threadId: string, name: NamedRun): Promise<RunRow | undefined>;
  /**
   * Makes a broken run live again that is the end of the active path, without what its end had added: its device goes on with
   * it. The returned claim, of a new epoch, appends to it from `closedFrom` on, and settles it.
   *
   * @returns undefined, nothing written, if it is not such a run of another device, if a run is live, or if no record
   *   begins with the first event of the end (they were joined)
   */
  reopen(threadId: string, runIndex: number, holder: string): Promise<Claim | undefined>;
  /**
   * Adds a run beside the active path, or at its end; it begins a thread that does not exist or was deleted. If the run is
   * here with an end that its device did not give it (`broken`; or `stopped` or `superseded`, with fewer events), its events
   * and end are replaced, and it keeps its place: one on the active path leaves the later runs there.
   *
   * Errors: RunnerError `invalid-input` if the chunks are not all events from seq 0 on.
   *
   * @returns the run. As it is, nothing written, if it is not to be replaced: it is this device's own, has the end that is
   *   placed, or ended as its device said. Undefined, nothing written, if this must wait: it `activates` and a run is live;
   *   the run itself is live, or a live run continues what would be replaced; or the run that it continues is not (or no
   *   longer) in the log, or has not ended
   */
  placeRun(run: PlacedRun): Promise<RunRow | undefined>;
  /**
   * Makes a settled run the end of the active path. Pending tool calls of another run are dropped. A no-op if it is the end.
   *
   * @param epoch of the head by which that was decided; absent: whatever it is now
   * @returns false, nothing written, if a run is live, there is no such run, or the thread has another epoch
   */
  activate(threadId: string, runIndex: number, epoch?: number): Promise<boolean>;
  /**
   * Puts threads into the list whose runs have not come yet, or changes how they are listed. A thread that is here stays as
   * it is. Stores that do not have it are for hosts that read everything at once.
   */
  listAbsent?(threads: readonly AbsentThread[]): Promise<void>;
  /**
   * Deletes what is here of a thread that other devices have, and lists it as absent.
   *
   * @param before the head that the decision was made by
   * @param mayLeave asked once more in the moment of the change
   * @returns false, nothing written, if the thread has changed since, a run of it is live or waits, or it may not leave
   */
  leave?(before: ThreadHead, thread: AbsentThread, mayLeave: () => boolean): Promise<boolean>;
  /** Ids of the absent threads, newest `updatedAt` first. */
  absent?(): Promise<readonly string[]>;
  /**
   * The runs of an absent thread have come; if it has none, it leaves the list.
   *
   * @param listed what people have made of it, as its runs' devices say; absent fields stay
   */
  arrived?(threadId: string, listed?: Partial<Pick<ThreadRow, "title" | "archived" | "pinned">>): Promise<void>;
}
