import type { BaseEvent, Interrupt, Message, RunAgentInput, State } from "@ag-ui/client";
import type { Chunk, OpenConstructs, RunStatus, SettledStatus, ThreadUpdate } from "../run/types.js";

/** The head of a thread: who runs what, and which run is the thread's active one. */
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
  /** Some run does not continue the run before it: the path must be read from the runs. */
  readonly branched?: true;
  /** Runs that were settled without reading their content: their messages and state are still to be derived. */
  readonly underived?: readonly number[];
  /** The first run that counts: what stood before it was deleted or cut off. Absent: 0. */
  readonly first?: number;
  /** The run `first` is all that is left of the thread's oldest runs: messages, state, closing; no events. */
  readonly cut?: true;
  /** A tombstone: the thread was deleted. Its run indexes are never used again. */
  readonly deleted?: true;
}

/** What a run is asked to end as. */
export interface StopRequest {
  readonly runId: string;
  readonly at: number;
  /** `superseded`: another run takes its place, at once. */
  readonly as: "stopped" | "superseded";
}

/** What a run was asked. Never tokens or headers. */
export interface PersistedInput {
  /** The messages that were new to the path. */
  readonly messages: readonly Message[];
  readonly resume?: RunAgentInput["resume"];
}

/** The events of a settled run that a snapshot shows besides messages and state. */
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
  /** The run that the caller named as the parent, else the one that was the thread's last. Never AG-UI's field. */
  readonly parentRunId?: string;
  readonly agentId?: string;
  readonly status: RunStatus;
  readonly epoch: number;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly eventCount?: number;
  /** Equal for equal inputs, so that the same run sent again is recognised. */
  readonly fingerprint: string;
}

/** The right to write one run, until another host takes it over. */
export interface Claim {
  readonly threadId: string;
  readonly runIndex: number;
  readonly runId: string;
  readonly epoch: number;
  readonly holder: string;
}

export interface ClaimRequest {
  readonly threadId: string;
  readonly runId: string;
  readonly agentId?: string;
  /** Absent: the thread's last run. */
  readonly parentRunId?: string;
  readonly holder: string;
  readonly startedAt: number;
  /** The head's `activeRunIndex` and `epoch` that the caller's base was read at; undefined for a new thread. */
  readonly base: { readonly activeRunIndex: number; readonly epoch: number } | undefined;
  readonly prevRunIndex: number | null;
  readonly input: PersistedInput;
  readonly fingerprint: string;
  /**
   * It answers an earlier run. A settled run of the same id gives it way: from then on it is found by its fingerprint, and
   * this one by the id.
   */
  readonly answers?: boolean;
  /** The title of a thread that has none yet. */
  readonly title: string;
}

export type ClaimResult =
  | {
      readonly is: "claimed";
      readonly claim: Claim;
      /** About how many bytes the thread's runs take that ended, see `sizeOf`; nothing is known of those that a host left behind. */
      readonly bytes: number;
    }
  /** The run id was used before. */
  | { readonly is: "exists"; readonly run: RunRow }
  /** The thread went on since the base was read. */
  | { readonly is: "moved" };

/** A message that a run added or replaced, in its place. */
export interface MessageRow {
  readonly message: Message;
  /** The message that it follows, where it was not added at the end. */
  readonly after?: string;
  /** The index of the run that added it, where this is a later one. Older builds did not write it. */
  readonly addedBy?: number;
}

/** A message row as it stands in the log; `row` is absent where the run left no message at all. */
export interface StoredMessageRow {
  readonly runIndex: number;
  /** The thread's messages begin anew here. */
  readonly resets: boolean;
  readonly row: MessageRow | undefined;
}

/** Which messages of a thread: `limit` ones, before that of the id `before`; absent: the last ones. */
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

/** Everything that ends a run in the log, for one transaction. */
export interface Settlement {
  readonly status: SettledStatus;
  readonly endedAt: number;
  /** Closing events and the terminal event; the last events of the run. */
  readonly chunk: Chunk;
  /** The agent ended the run itself: a stop request that was not yet seen does not change that. A `superseded` end neither. */
  readonly ownTerminal: boolean;
  readonly closing: RunClosing;
  readonly derived: Derived;
  /** About how many bytes the run takes, see `sizeOf`. */
  readonly bytes: number;
}

/** What a run left behind, in final form. */
export interface Derived {
  readonly messages: readonly MessageRow[];
  /** The messages are all of the thread's, not only what the run added. */
  readonly rewritten: boolean;
  readonly state: State;
  readonly interrupts: readonly Interrupt[];
}

/** Builds the end of a run whose holder is gone, from what stands outside of the payloads. */
export type BuildForeignEnd = (run: RunRow, nextSeq: number, open: OpenConstructs | undefined) => Chunk;

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

/**
 * The log of all runs, and what is derived from it.
 *
 * - Every write must be atomic, and must check in its own transaction that the claim still stands; who lost it gets
 *   RunnerError `fenced` and writes nothing.
 * - What `claim`, `requestStop`, `settle`, `settleForeign` and `updateThread` acknowledge must survive power loss; what
 *   `append` acknowledges must survive the death of every process of the origin.
 * - Repeating a call after an ambiguous end must repeat nothing.
 * - Epochs must grow over the whole store and never be used twice.
 * - What is handed out of payloads must be no deeper than what is recorded now, whatever stands there (see `readable`).
 * - A record that is not valid must be told, as RunnerError `corrupt-record`, to whoever reads what it belongs to, and left
 *   as it is; it must hide no other thread, and keep no live run from its end.
 */
export interface RunStore {
  /** The fence: a new epoch, the holder, and the run as `running`, in one transaction. */
  claim(request: ClaimRequest): Promise<ClaimResult>;
  /** Adds the next chunk of a live run. @returns what somebody asked the run to end as, if so */
  append(claim: Claim, chunk: Chunk): Promise<{ readonly stop?: StopRequest["as"] }>;
  /** Ends the run. @returns `stop-requested`, nothing written, where a stop request decides the end instead */
  settle(claim: Claim, settlement: Settlement): Promise<"settled" | "stop-requested">;
  /**
   * Ends a live run whose holder is gone, or is taken over from: takes a new epoch, so its holder can write nothing
   * more. @returns the run as it was, or undefined where it is not live any more
   */
  settleForeign(
    threadId: string,
    runId: string,
    status: SettledStatus,
    endedAt: number,
    build: BuildForeignEnd,
  ): Promise<RunRow | undefined>;
  /** Adds what a foreign end left out. Does nothing where it is there already. */
  derive(threadId: string, runIndex: number, closing: RunClosing, derived: Derived): Promise<void>;
  /** @returns the live run that is asked to stop and whether this call asked first; undefined where none matches */
  requestStop(
    threadId: string,
    runId: string | undefined,
    at: number,
    as?: StopRequest["as"],
  ): Promise<
    { readonly runId: string; readonly runIndex: number; readonly holder: string; readonly first: boolean } | undefined
  >;

  head(threadId: string): Promise<ThreadHead | undefined>;
  /** Heads of all threads with a live run. */
  liveHeads(): Promise<readonly ThreadHead[]>;
  run(threadId: string, runIndex: number): Promise<RunRow | undefined>;
  /** The newest run of this id; that of the fingerprint, where one is given and several runs had the id. */
  runById(threadId: string, runId: string, fingerprint?: string): Promise<RunRow | undefined>;
  /** Runs of this id in whichever thread, of each thread the newest, at most `limit`. */
  runsOfId(runId: string, limit: number): Promise<readonly RunRow[]>;
  /** All runs of a thread that count, by runIndex. */
  runs(threadId: string): Promise<readonly RunRow[]>;
  /** A thread's runs by falling runIndex, those below `before` with this status, at most `limit`. */
  runsBefore(query: RunQuery): Promise<readonly RunRow[]>;
  input(threadId: string, runIndex: number): Promise<PersistedInput | undefined>;
  closing(threadId: string, runIndex: number): Promise<RunClosing | undefined>;
  /**
   * Committed chunks of a run with events after `afterSeq`, in order, at most about `limit` events. There may be fewer
   * while the run is repacked; none only where there are no more.
   */
  chunks(threadId: string, runIndex: number, afterSeq: number, limit: number): Promise<readonly Chunk[]>;
  /** Message rows of the runs of `path` (all up to `upTo` where undefined), in order. */
  messageRows(
    threadId: string,
    upTo: number,
    path: ReadonlySet<number> | undefined,
  ): Promise<readonly StoredMessageRow[]>;
  /**
   * Messages in each form in which a run of the thread, on whichever branch, added or replaced them, by id. Ids that there
   * are none of are left out, and so is what cannot be read.
   */
  messageForms(threadId: string, messageIds: readonly string[]): Promise<ReadonlyMap<string, readonly Message[]>>;
  /**
   * Messages of the path (see {@link messageRows}), as they are after run `upTo`: the last ones, or those before a message.
   *
   * - Pages read one from the other, back to the first, must together be all messages that the rows lead to, in order.
   * - A page must hold `limit` messages where there are so many. It must not begin with one of several messages of one id
   *   but the first, which `before` names: it is longer where it would.
   * - What it costs must follow from the rows of the page and of the runs that those are of, not from the thread's length.
   *
   * @returns undefined where there is no message of the id `before`
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
  thread(threadId: string): Promise<ThreadRow | undefined>;
  /** Threads by falling `updatedAt`. */
  threads(query: {
    limit: number;
    before?: number;
    agentId?: string;
    archived: boolean;
  }): Promise<readonly ThreadRow[]>;
  /**
   * Changes the thread's row.
   *
   * - It must write what `update` gives and leave the rest as it then is, `updatedAt` included: of two updates at once
   *   that give different fields, and of an update and a claim or an end of a run at once, neither may undo the other.
   * - A title that it wrote must stay, whatever titles later claims bring.
   * - It must not touch the head: a live run, and appends to others, are not held up by it.
   *
   * @returns the row after it; undefined, nothing written, where the thread is not there
   */
  updateThread(threadId: string, update: ThreadUpdate): Promise<ThreadRow | undefined>;
  /**
   * Makes the thread's head a tombstone and takes it from the list; then deletes everything of it, in pieces (what a
   * dead host left of that is deleted by the next call of {@link sweep}).
   *
   * @returns false, nothing done, where the thread has a live run or is not there
   */
  deleteThread(threadId: string): Promise<boolean>;
  /**
   * Cuts off what stood before run `base.runIndex`, a settled and derived run of the active path: `base` stays as its
   * messages and state, its own and all older events go, and so do branches that left the path before it. Nothing is
   * done where the thread has a live run, or went on (`epoch` is not the head's).
   *
   * @returns how many runs lost their events; undefined where nothing was done
   */
  cut(threadId: string, epoch: number, base: CutBase): Promise<number | undefined>;
  /**
   * Joins the chunk records of a settled run into larger ones, so that reading it takes fewer. Does nothing to a run that
   * is live, or whose events do not count any more; done again, nothing.
   *
   * - It must lose nothing: each event keeps its seq and time, and only chunks of one epoch are joined.
   * - Each joined record must take the place of its parts in one transaction of a bounded size, and only where they still
   *   are what they were when they were read. So a deletion, a cut, another host that does the same, and a death in the
   *   middle leave a run that is whole, or gone.
   * - Whoever reads the chunks meanwhile must get each event once.
   * - A record that is not valid must be left as it is, and what comes after it too; that is told to who reads it.
   *
   * @param signal ends it after the record that is being joined
   */
  repack(threadId: string, runIndex: number, signal?: AbortSignal): Promise<void>;
  /** Deletes what deleted and cut threads left behind, as a host that died in between does. */
  sweep(): Promise<void>;
  /**
   * Ids of the threads that have to go so that `keep` are left, least recently updated first. Pinned and live ones never
   * go, so there may be fewer.
   *
   * @param bytes about how many those that are left may take, the last updated thread aside; heeded by the store in memory
   */
  threadsBeyond(keep: number, bytes?: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** A thread at the run before which it is cut. */
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
