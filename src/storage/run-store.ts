import type { BaseEvent, Interrupt, Message, RunAgentInput, State } from "@ag-ui/client";
import type { Attempt } from "../run/hosted.js";
import type { ToolResult } from "../run/pending-tool-calls.js";
import type { RecoveryNote } from "../run/recovery.js";
import type { Chunk, LockState, OpenConstructs, RunStatus, SettledStatus, ThreadUpdate } from "../run/types.js";
import type { CallChange, LeftByRun, PendingToolCall, PendingToolCalls } from "./pending-tool-calls.js";
import type { RecoveryWaiting, TurnRequest, WaitingStore } from "./waiting.js";

/** The head of a thread: its live run and holder, and its active run. */
export interface ThreadHead {
  readonly threadId: string;
  /** The fencing number of the thread's newest run or takeover. */
  readonly epoch: number;
  /** How many runs the thread ever had: the next `runIndex`. */
  readonly runCount: number;
  /** The run at the end of the active path. */
  readonly activeRunIndex: number;
  readonly live?: { readonly runIndex: number; readonly runId: string };
  /** The host that holds the live run. */
  readonly holder?: string;
  readonly stop?: StopRequest;
  /** Some run does not continue the run before it, so the path must be read from the runs. */
  readonly branched?: true;
  /** Runs settled without reading their content: their messages and state are still to be derived. */
  readonly underived?: readonly number[];
  /** The first run that counts; earlier ones were deleted or cut off. Absent: 0. */
  readonly first?: number;
  /** The run `first` stands for the thread's oldest runs: it has messages, state and closing, no events. */
  readonly cut?: true;
  /** Calls of front-end tools that the last run left without a result; read by `pendingIn`. */
  readonly pending?: PendingToolCalls;
  /** A tombstone of a deleted thread. Its run indexes are never used again. */
  readonly deleted?: true;
}

/** What a run is asked to end as. */
export interface StopRequest {
  readonly runId: string;
  readonly at: number;
  /** `superseded`: another run takes its place, at once. */
  readonly as: "stopped" | "superseded";
}

/** A run's input. Never tokens or headers. */
export interface PersistedInput {
  /** The messages that were new to the path. */
  readonly messages: readonly Message[];
  readonly resume?: RunAgentInput["resume"];
  /** What an attempt to go on with the run is given beside messages; only of runs that may be recovered. */
  readonly again?: Partial<Pick<RunAgentInput, "tools" | "context" | "forwardedProps">>;
}

/** The events of a settled run that a snapshot has besides messages and state. */
export interface RunClosing {
  /** Without its input. */
  readonly runStarted: BaseEvent;
  /** CUSTOM and RAW events, in order. */
  readonly customs: readonly BaseEvent[];
  readonly terminal: BaseEvent;
}

export interface RunRow {
  readonly threadId: string;
  readonly runIndex: number;
  readonly runId: string;
  /** The run that this one continues; null for the first of a path. */
  readonly prevRunIndex: number | null;
  /** The parent that the caller named, else the thread's last run. Not AG-UI's field. */
  readonly parentRunId?: string;
  readonly agentId?: string;
  readonly status: RunStatus;
  readonly epoch: number;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly eventCount?: number;
  /** Equal for equal inputs, so that a repeated request is recognized. */
  readonly fingerprint: string;
  /** It goes on with a broken run, the one before it on its path. */
  readonly attempt?: Attempt;
  /** Of an errored or broken run: seq of the first event that its end added. Older builds did not write it. */
  readonly closedFrom?: number;
  /** Why a broken run does not go on by itself, where its agent's policy has decided so. */
  readonly recovery?: RecoveryNote;
}

/** The right to write a run, until another host takes it over. */
export interface Claim {
  readonly threadId: string;
  readonly runIndex: number;
  readonly runId: string;
  readonly epoch: number;
  readonly holder: string;
}

export interface ClaimRequest extends TurnRequest {
  readonly threadId: string;
  readonly agentId?: string;
  /** Absent: the thread's last run. */
  readonly parentRunId?: string;
  readonly holder: string;
  readonly startedAt: number;
  /** `activeRunIndex` and `epoch` of the head that the caller's base was read at; undefined for a new thread. */
  readonly base: { readonly activeRunIndex: number; readonly epoch: number } | undefined;
  /** The pending tool calls whose answers are in the input: all that are answered, if it continues the path. */
  readonly toolCallIds?: readonly string[];
  readonly prevRunIndex: number | null;
  readonly input: PersistedInput;
  readonly fingerprint: string;
  /** It answers an earlier run: a settled run with the same id is from then on found by its fingerprint, this one by id. */
  readonly answers?: boolean;
  /** For a thread that has none yet. */
  readonly title: string;
  readonly attempt?: Attempt;
}

export type ClaimResult =
  | {
      readonly is: "claimed";
      readonly claim: Claim;
      /** About how many bytes the thread's ended runs take, see `sizeOf`; runs of dead hosts are not counted. */
      readonly bytes: number;
    }
  /** The run id was used. */
  | { readonly is: "exists"; readonly run: RunRow }
  /** The thread changed after the base was read. */
  | { readonly is: "moved" }
  /** A waiting run does not wait any more, or another one goes first. */
  | { readonly is: "gone" | "behind" };

/** A message that a run added or replaced. */
export interface MessageRow {
  readonly message: Message;
  /** The message that it follows, unless it was added at the end. */
  readonly after?: string;
  /** The run that added it, if this is a later one. Older builds did not write it. */
  readonly addedBy?: number;
}

/** A stored message row; `row` is undefined if the run left no message. */
export interface StoredMessageRow {
  readonly runIndex: number;
  /** The thread's messages start over here. */
  readonly resets: boolean;
  readonly row: MessageRow | undefined;
}

/** Which page: the last `limit` messages, or the last before the message `before`. */
export interface MessagePagePlace {
  readonly before: string | undefined;
  readonly limit: number;
}

export interface StoredMessagePage {
  /** Oldest first. */
  readonly messages: readonly Message[];
  /** There are messages before the first one. */
  readonly earlier: boolean;
}

/** The end of a run, written in one transaction. */
export interface Settlement {
  readonly status: SettledStatus;
  readonly endedAt: number;
  /** The run's last events: closing events and the terminal event. */
  readonly chunk: Chunk;
  /** The agent's own end, or a `superseded` one: has precedence over a stop request that was not yet seen. */
  readonly ownTerminal: boolean;
  readonly closing: RunClosing;
  readonly derived: Derived;
  /** Of a finished run: the tool calls that it leaves. */
  readonly left?: LeftByRun | undefined;
  /** About how many bytes the run takes, see `sizeOf`. */
  readonly bytes: number;
  /** Of a broken run: waits from then on, before all others of the thread. */
  readonly recovery?: RecoveryWaiting | undefined;
}

/** What a run left behind. */
export interface Derived {
  readonly messages: readonly MessageRow[];
  /** The messages are all of the thread's, not only those that the run added. */
  readonly rewritten: boolean;
  readonly state: State;
  readonly interrupts: readonly Interrupt[];
}

/** Builds the end of a run whose holder is gone, from data outside of the payloads. */
export type BuildForeignEnd = (run: RunRow, nextSeq: number, open: OpenConstructs | undefined) => Chunk;

/**
 * Decides whether, and as what, a run waits that goes on with the one that is ended. Given what {@link BuildForeignEnd} is.
 */
export type DecideRecovery = (
  run: RunRow,
  nextSeq: number,
  open: OpenConstructs | undefined,
) => RecoveryWaiting | undefined;

export interface ThreadRow {
  readonly threadId: string;
  readonly title: string;
  readonly agentId?: string;
  readonly archived: boolean;
  readonly pinned: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly runCount: number;
  readonly lastStatus?: SettledStatus;
}

/** Reads of the log; see {@link RunStore}. */
export interface RunReads {
  head(threadId: string): Promise<ThreadHead | undefined>;
  /** The heads with a live run. */
  liveHeads(): Promise<readonly ThreadHead[]>;
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
   * Committed chunks of a run with events after `afterSeq`, in order, of about `limit` events at most. There may be fewer
   * during a repack; an empty result means that there are no more.
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
  /** Threads by descending `updatedAt`. */
  threads(query: {
    limit: number;
    before?: number;
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
export interface RunStore extends RunReads, WaitingStore {
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
   * meanwhile, the next {@link sweep} continues. A thread that only has waiting runs exists.
   *
   * @param before the head when the deletion was asked for: a thread that has begun anew since stays
   * @param unlessWaiting leaves a thread alone in which runs wait
   * @returns false, nothing done, if the thread has a live run, does not exist or has begun anew
   */
  deleteThread(threadId: string, before?: ThreadHead, unlessWaiting?: boolean): Promise<boolean>;
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
  /** Whether its content can be read; undefined where nothing is encrypted. Errors: RunnerError `wrong-key`. */
  lockState?(): Promise<LockState | undefined>;
  /** How often somebody has locked it for all. */
  locks?(): Promise<number>;
  /**
   * Encrypts what was stored before the store's key was given or changed. Where nothing is encrypted, a no-op.
   *
   * @param signal stops it; the next call goes on
   */
  encryptRest?(signal: AbortSignal): Promise<void>;
  /**
   * Ids of threads to delete so that `keep` are left, least recently updated first. Pinned and live ones stay, and those in
   * which runs wait, so there may be fewer.
   *
   * @param bytes about how many the remaining threads may take, apart from the last updated one; only in memory
   */
  threadsBeyond(keep: number, bytes?: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

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
