import type { Interrupt, Message, State } from "@ag-ui/client";
import type { ToolResult } from "../run/pending-tool-calls.js";
import type { ThreadPlace } from "../run/thread-order.js";
import type { Chunk, LockState, RunStatus, SettledStatus, ThreadUpdate } from "../run/types.js";
import type { PayloadCodec } from "./codec.js";
import type { DeviceStore } from "./devices.js";
import type { CallChange, PendingToolCall } from "./pending-tool-calls.js";
import type { WaitingStore } from "./waiting.js";
import type {
  BuildForeignEnd,
  Claim,
  ClaimRequest,
  ClaimResult,
  DecideRecovery,
  Derived,
  MessagePagePlace,
  PersistedInput,
  RunClosing,
  RunRow,
  Settlement,
  StopRequest,
  StoredMessagePage,
  StoredMessageRow,
  ThreadHead,
  ThreadRow,
} from "./rows.js";

export type * from "./rows.js";

/** Reads of the log; see {@link RunStore}. */
export interface RunReads {
  head(threadId: string): Promise<ThreadHead | undefined>;
  /** The heads with a live run. */
  liveHeads(): Promise<readonly ThreadHead[]>;
  /** Heads of all threads, deleted ones too, in order of their ids; those after `after`, some at a time. Empty: no more. */
  heads(after: string | undefined): Promise<readonly ThreadHead[]>;
  run(threadId: string, runIndex: number): Promise<RunRow | undefined>;
  /** The newest run of this id; if several runs had the id, that of the fingerprint. */
  runById(threadId: string, runId: string, fingerprint?: string): Promise<RunRow | undefined>;
  /** In each thread the newest run of this id, at most `limit`. */
  runsOfId(runId: string, limit: number): Promise<readonly RunRow[]>;
  /** All runs of a thread that count, by ascending runIndex. */
  runs(threadId: string): Promise<readonly RunRow[]>;
  /** A thread's runs by descending runIndex. */
  runsBefore(query: RunQuery): Promise<readonly RunRow[]>;
  input(threadId: string, runIndex: number): Promise<PersistedInput | undefined>;
  closing(threadId: string, runIndex: number): Promise<RunClosing | undefined>;
  /**
   * Committed chunks of a run with events after `afterSeq`, in order, of about `limit` events at most; Infinity: all. There
   * may be fewer, during a repack or where they are large; an empty result means that there are no more.
   */
  chunks(threadId: string, runIndex: number, afterSeq: number, limit: number): Promise<readonly Chunk[]>;
  /** Message rows of the runs of `path` (undefined: all) up to `upTo`, in order, from the last one that resets. */
  messageRows(
    threadId: string,
    upTo: number,
    path: ReadonlySet<number> | undefined,
  ): Promise<readonly StoredMessageRow[]>;
  /** By id, each form that a run of the thread, on any branch, gave the message. Omits unknown ids and unreadable forms. */
  messageForms(threadId: string, messageIds: readonly string[]): Promise<ReadonlyMap<string, readonly Message[]>>;
  /**
   * A page of the path's messages (see {@link messageRows}) after run `upTo`.
   *
   * - All pages, read backwards by `before`, must together be all messages, in order.
   * - A page must have `limit` messages, unless there are fewer. If it would begin in the middle of several messages of one
   *   id, it must be extended to the first of them, which `before` names.
   * - Its cost must depend on the page's rows and their runs, not on the thread's length.
   *
   * @returns undefined if there is no message with the id `before`
   */
  messagePage(
    threadId: string,
    upTo: number,
    path: ReadonlySet<number> | undefined,
    place: MessagePagePlace,
  ): Promise<StoredMessagePage | undefined>;
  stateAfter(
    threadId: string,
    runIndex: number,
  ): Promise<{ readonly state: State; readonly interrupts: readonly Interrupt[] } | undefined>;
  /** The answers to pending tool calls that the head holds. */
  toolResults(head: ThreadHead | undefined): Promise<readonly ToolResult[]>;
  thread(threadId: string): Promise<ThreadRow | undefined>;
  /** Threads in the order of `byPlace`. `before`: only those behind this place. */
  threads(query: {
    limit: number;
    before?: ThreadPlace;
    agentId?: string;
    archived: boolean;
  }): Promise<readonly ThreadRow[]>;
}

/**
 * The log of all runs, and what is derived from it.
 *
 * - Every write must be atomic, and must check in its own transaction that the claim still stands; otherwise it writes
 *   nothing and throws RunnerError `fenced`.
 * - What `claim`, `requestStop`, `settle`, `settleForeign` and `updateThread` acknowledge must survive power loss; what
 *   `append` acknowledges must survive the death of every process of the origin.
 * - Writes must be idempotent: repeating one after an ambiguous end must repeat nothing.
 * - Epochs must grow over the whole store and never be used twice.
 * - Returned payloads must not be nested deeper than the current limits, whatever is stored (see `readable`).
 * - An invalid record must be reported as RunnerError `corrupt-record` to whoever reads what it belongs to, and left as it
 *   is; it must hide no other thread, and keep no live run from its end.
 */
export interface RunStore extends RunReads, WaitingStore, DeviceStore {
  /** The fence: a new epoch, the holder, and the run as `running`, in one transaction. */
  claim(request: ClaimRequest): Promise<ClaimResult>;
  /** Adds the next chunk of a live run. @returns the stop request, if any */
  append(claim: Claim, chunk: Chunk): Promise<{ readonly stop?: StopRequest["as"] }>;
  /** Ends the run. @returns `stop-requested`, nothing written, if a stop request has precedence */
  settle(claim: Claim, settlement: Settlement): Promise<"settled" | "stop-requested">;
  /**
   * Ends another host's live run under a new epoch, so that its holder can write nothing more.
   *
   * @param recovery decides in the same transaction whether a run goes on with it, which then waits before all others
   * @returns the ended run; undefined if it is not live any more
   */
  settleForeign(
    threadId: string,
    runId: string,
    status: SettledStatus,
    endedAt: number,
    build: BuildForeignEnd,
    recovery?: DecideRecovery,
  ): Promise<RunRow | undefined>;
  /** Adds what {@link settleForeign} did not derive. A no-op if it is already there. */
  derive(threadId: string, runIndex: number, closing: RunClosing, derived: Derived): Promise<void>;
  /** @returns the live run, and whether this call asked first; undefined if none matches */
  requestStop(
    threadId: string,
    runId: string | undefined,
    at: number,
    as?: StopRequest["as"],
  ): Promise<
    { readonly runId: string; readonly runIndex: number; readonly holder: string; readonly first: boolean } | undefined
  >;
  /**
   * Changes a pending tool call, in one transaction with the check that it is pending.
   *
   * @param change given the call as it is, and `result` in the form that is stored. May be called again
   * @returns what `change` did. Errors: RunnerError `call-over` where the call is not pending
   */
  changeToolCall(
    threadId: string,
    toolCallId: string,
    change: (call: PendingToolCall, result: unknown) => CallChange,
    result?: ToolResult,
  ): Promise<CallChange["is"]>;
  /**
   * Changes the thread's row.
   *
   * - It must write only the given fields (not `updatedAt`): a concurrent update of other fields, claim or end of a run must
   *   not be undone, nor undo this.
   * - A title that it wrote must not be replaced by that of a later claim.
   * - It must not touch the head, so that it blocks no appends.
   *
   * @returns the new row; undefined, nothing written, if there is no such thread
   */
  updateThread(threadId: string, update: ThreadUpdate): Promise<ThreadRow | undefined>;
  /**
   * Makes the thread's head a tombstone and removes it from the list; then deletes the rest in pieces. If the host dies
   * meanwhile, the next {@link sweep} continues. A thread that only has waiting runs exists, and so does one that is only
   * in the list.
   *
   * @param before the head when the deletion was asked for: a thread that has begun anew since stays
   * @param listed by {@link threadsBeyond}: the thread stays if it has changed, was pinned or has waiting runs since
   * @returns false, nothing done, if the thread has a live run, does not exist, has begun anew or stays
   */
  deleteThread(threadId: string, before?: ThreadHead, listed?: ListedThread): Promise<boolean>;
  /**
   * Cuts off what precedes run `base.runIndex`, a settled and derived run of the active path: the run keeps the messages
   * and state of `base`; its own and all older events are deleted, and so are branches that left the path before it.
   *
   * @returns how many runs lost their events; undefined, nothing done, if the thread has a live run or changed (`epoch` is
   *   not the head's)
   */
  cut(threadId: string, epoch: number, base: CutBase): Promise<number | undefined>;
  /**
   * Joins the chunk records of a settled run into larger ones, so that a read takes fewer. Idempotent; a no-op for a live
   * run, and for one whose events do not count any more.
   *
   * - It must be lossless: each event keeps its seq and time, and only chunks of one epoch are joined.
   * - Each joined record must replace its parts in one transaction of bounded size, and only if they have not changed since
   *   they were read. So the run stays whole, or is gone, whatever happens meanwhile: a deletion, a cut, a repack by another
   *   host, the death of this one.
   * - A concurrent reader must get each event once.
   * - An invalid record, and all after it, must be left as they are; readers of the run are told.
   *
   * @param signal stops it after the current record
   */
  repack(threadId: string, runIndex: number, signal?: AbortSignal): Promise<void>;
  /** Deletes what hosts that died left of deleted and cut threads. */
  sweep(): Promise<void>;
  /** What its content is stored by; absent: as it is. */
  readonly codec?: PayloadCodec;
  /**
   * For whoever shows ids, statuses and times, which are not encrypted: reads of them need no key, so that any host can end
   * any run. Errors: RunnerError `locked` or `wrong-key`, where the key is missing.
   */
  readable?(): Promise<void>;
  /** Whether its content can be read; undefined where nothing is encrypted. Errors: RunnerError `wrong-key`. */
  lockState?(): Promise<LockState | undefined>;
  /** How often somebody has locked it for all. */
  locks?(): Promise<number>;
  /** Another text after each change of the key that unlocks it; undefined where there is none. */
  keyMark?(): Promise<string | undefined>;
  /**
   * Encrypts what was stored before the store's key was given or changed. Where nothing is encrypted, a no-op.
   *
   * @param signal stops it; the next call goes on
   * @returns whether something is left that a later call may encrypt
   */
  encryptRest?(signal: AbortSignal): Promise<boolean>;
  /**
   * Threads to delete so that `keep` are left, least recently updated first. Pinned and live ones stay, and those in
   * which runs wait, so there may be fewer.
   *
   * @param bytes about how many the remaining threads may take, apart from the last updated one; only in memory
   */
  threadsBeyond(keep: number, bytes?: number): Promise<readonly ListedThread[]>;
  close(): Promise<void>;
}

/** A thread that a limit may remove, as it was when it was found. */
export type ListedThread = Pick<ThreadRow, "threadId" | "updatedAt" | "runCount">;

/** The run before which a thread is cut, and the thread's content after it. */
export interface CutBase {
  readonly runIndex: number;
  readonly messages: readonly Message[];
  readonly state: State;
  readonly interrupts: readonly Interrupt[];
}

export interface RunQuery {
  readonly threadId: string;
  readonly status?: RunStatus;
  /** A runIndex; absent: from the newest. */
  readonly before?: number;
  readonly limit: number;
}
