import type { Attempt } from "../run/hosted.js";
import type { RecoveryNote, RunRecovery } from "../run/recovery.js";
import type { BaseEvent, Message, RunAgentInput } from "@ag-ui/client";
import type { Replay } from "../run/contract.js";
import type { RunnerErrorCode, RunnerErrorDetails } from "../run/errors.js";
import type { ThreadPlace } from "../run/thread-order.js";
import type { Chunk, Cursor, KeyForm, LockState, RunStatus, SettledStatus } from "../run/types.js";

/**
 * What crosses from a tab to its host and back. History of PROTOCOL_VERSION:
 * 1: hello, comlink calls of {@link HostApi}, frames with credit.
 * 2: reads of runs, threads and pages of messages; attachments of one run (`runId`, which a host of 1 would not heed),
 *    of the last one, with only the last messages (`limit`), and runs of readers that have no more (`earlier`); the
 *    number of attachments in the status; credit also bounds the size of frames on their way.
 * 3: each call has a context with headers before its arguments; the list of threads is watched on a port of its own;
 *    `agentId` of attachments and stops; HTTP requests (`fetch`), answered by the frames of relay.ts; single threads
 *    are changed and deleted; runs that are in no log (`unrecorded`).
 * 4: a run's sender says what it has `cut` and where it branches (`branchBefore`), instead of `earlier`.
 * 5: tool calls that wait for the front end are watched, claimed and answered; a run may go on after them alone
 *    (`afterToolCalls`).
 * 6: runs wait for their turn: added, watched, moved, cancelled and tried again; a run's request says what becomes of a live
 *    run (`onBusy`); tabs offer language models that they run
 *    (`offerModel`).
 * 7: an encrypted database is locked and unlocked; a run that need not wait is begun by the host that is asked.
 * 8: another branch is taken up (`activateRun`); other devices in the status (`sync`), of runs (`device`) and in refusals.
 */
export const PROTOCOL_VERSION = 8;

/** Which context runs the agents. */
export type HostKind = "shared-worker" | "worker" | "page";

/** `durable`: committed to IndexedDB before it is shown. `memory`: gone with the host. */
export type Durability = "durable" | "memory";

/**
 * What a live run survives besides an unsubscribe. `tab-close`: the closing of its tab while another tab is open.
 * `reload`: also the reload of the only tab. `nothing`: it ends with the tab that hosts it.
 */
export type Survives = "nothing" | "tab-close" | "reload";

/**
 * What keeps a thread to one live run (L5): Web Locks; or, where the page has none (plain http), the fence in the log
 * and hosts that ask one another whether they live. That is weaker: a host that is blocked for 8 seconds can lose its
 * run, and a dead host's thread is free only after about as long. The log is correct in both cases.
 */
export type Exclusion = "locks" | "fence";

/** A tab's connection to its host: one value of `runtime.status$`. */
export type RuntimeStatus =
  | { readonly is: "connecting" }
  | {
      readonly is: "connected";
      readonly host: HostKind;
      /** New with every start of a host. */
      readonly bootId: string;
      readonly dbName: string;
      readonly durability: Durability;
      readonly survives: Survives;
      /** Tabs connected to this host, this one included. */
      readonly tabs: number;
      /** Attachments and runs that stream to tabs of this host now. Reported some ms after a change. */
      readonly attachments: number;
      /**
       * Ids of the host's agents; absent where they are made per request, or a middleware decides who may know them:
       * then GET `/info` lists them.
       */
      readonly agents?: readonly string[];
      readonly exclusion: Exclusion;
      /** Whether the content can be read; absent where it is not encrypted. */
      readonly encryption?: LockState;
      /** The other devices; absent where threads are on this one only. */
      readonly sync?: SyncState;
      /**
       * The database was deleted after this host had started (`storage-deleted`): its content is gone. Of an encrypted
       * database also why it cannot be read: the key that the host was given is not its key (`wrong-key`), the function that
       * gives the key failed (`locked`), or a code of the storage.
       */
      readonly error?: RunnerErrorData;
    }
  | { readonly is: "reconnecting"; readonly attempt: number }
  | { readonly is: "failed"; readonly error: RunnerErrorData }
  | { readonly is: "closed" };

/** A thread in a list. Times in ms since the Unix epoch. */
export interface ThreadSummary {
  readonly threadId: string;
  /** The beginning of the first user message, until somebody renames the thread. */
  readonly title: string;
  readonly agentId?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly runCount: number;
  readonly archived: boolean;
  readonly pinned: boolean;
  /** The live run, of whichever host. */
  readonly live?: { readonly runId: string; readonly runIndex: number };
  /** How the active run ended, if it has. */
  readonly lastStatus?: SettledStatus;
  /** Its runs are on other devices only: they come when somebody opens it, or in the background. */
  readonly absent?: true;
}

/** A page of the list of threads. */
export interface ThreadListQuery {
  /** At most this many, newest `updatedAt` first. Default 50, at most 500. */
  readonly limit?: number;
  /** Only threads behind this one: the previous page's last thread. A number: only those with a smaller `updatedAt`. */
  readonly before?: number | ThreadPlace;
  readonly agentId?: string;
  /** Default false: those that are not archived; true: only those that are. */
  readonly archived?: boolean;
}

/** A page of a thread's runs. */
export interface RunListQuery {
  readonly status?: RunStatus;
  /** At most this many, newest first. Default 50, at most 500. */
  readonly limit?: number;
  /** Only runs with a smaller runIndex: that of the previous page's last run. */
  readonly before?: number;
}

/** A page of a thread's messages. */
export interface MessagePageQuery {
  readonly threadId: string;
  /** Only messages before the one with this id: the first of the page after. Absent: the last messages. */
  readonly before?: string;
  /** At most this many. Default 50, at most 500. */
  readonly limit?: number;
}

/** Messages of a thread's active path, including those of the live run so far. */
export interface MessagePage {
  /** Oldest first. */
  readonly messages: readonly Message[];
  /** There are messages before the first one. */
  readonly earlier: boolean;
}

/** Names a run; `threadId` is needed where several threads have a run with this id. */
export interface NamedRun {
  readonly runId: string;
  readonly threadId?: string;
}

/** Which of a run's committed events: see `getRunEvents` of the runner. */
export interface RunEventsRequest extends NamedRun {
  readonly types?: readonly string[];
  readonly after?: number;
  readonly limit?: number;
}

/** A change of the list of threads, made in any tab or host. */
export type ThreadChange =
  | { readonly type: "changed"; readonly thread: ThreadSummary }
  | { readonly type: "deleted"; readonly threadId: string }
  /** List again: changes may have been missed (the host ended), or everything is gone (`error`: `storage-deleted`). */
  | { readonly type: "anew"; readonly error?: RunnerErrorData };

/** The calls of front-end tools that a thread's last run left without a result; none while a run is live. */
export interface ThreadToolCalls {
  /** The id of the run that goes on once each call is answered; absent where none waits. */
  readonly nextRunId?: string;
  /** The agent that made them, and goes on. */
  readonly agentId?: string;
  /** In the order of the messages. */
  readonly calls: readonly WaitingToolCall[];
}

/**
 * A tool call that waits for the front end.
 *
 * - `open`: no tab runs it.
 * - `claimed`: a tab's handler runs, or somebody is asked there.
 * - `interrupted`: a handler that must not run twice was cut off by the end of its tab.
 * - `answered`: its result is kept, until the run that goes on has it.
 */
export interface WaitingToolCall {
  readonly toolCallId: string;
  readonly name: string;
  readonly status: "open" | "claimed" | "interrupted" | "answered";
  /** Of the claim or answer that gave it its status. */
  readonly token?: string;
  /** Its result is for the next message: the agent does not go on because of it. */
  readonly followUp?: false;
  /** Another device has called: its tabs run the handler. Here somebody may answer, or claim it `again`: have it run here. */
  readonly elsewhere?: true;
}

/** A tab wants to run the handler of a waiting tool call. */
export interface ToolCallClaim {
  readonly threadId: string;
  readonly toolCallId: string;
  /** Identifies the claim: a repeated request claims once. */
  readonly token: string;
  /** The handler must not run twice. Default false. */
  readonly once?: boolean;
  /** An interrupted call is to run again, or one of another device here. Default false. */
  readonly again?: boolean;
}

/** The result of a waiting tool call. */
export interface ToolCallAnswer {
  readonly threadId: string;
  readonly toolCallId: string;
  /** That of the claim; of an answer without a claim, any: a repeated request answers once. Becomes the id of its message. */
  readonly token: string;
  /** `handler`: of the claim with this token, which must stand. `user`: somebody decided, whatever works on it. */
  readonly by: "handler" | "user";
  readonly content: string;
  /** Why it failed, beside what the agent is told in `content`. */
  readonly error?: string;
  /** Whether the agent goes on because of it. Default true. */
  readonly followUp?: boolean;
}

/** A `RunnerError` as data. */
export interface RunnerErrorData {
  readonly code: RunnerErrorCode;
  readonly message: string;
  readonly details: RunnerErrorDetails;
}

/** A run in the log, without its events. Times in ms since the Unix epoch. */
export interface RunSummary {
  readonly threadId: string;
  readonly runId: string;
  readonly runIndex: number;
  /** The run that it continues; null for the first of a path. */
  readonly prevRunIndex: number | null;
  /** The run that the caller named as its parent, else the thread's last run at its start. */
  readonly parentRunId?: string;
  readonly agentId?: string;
  readonly status: RunStatus;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly eventCount?: number;
  /** It goes on with a broken run, the one before it on its path. */
  readonly attempt?: Attempt;
  /** Why a broken run does not go on by itself, where its agent's policy has decided so. */
  readonly recovery?: RecoveryNote;
  /** The other device that executed it, by id and name; absent: this one. */
  readonly device?: { readonly id: string; readonly name: string };
}

/** `hello` comes from the host unasked; `port` is the comlink endpoint of {@link HostApi}. */
export interface Hello {
  readonly type: "hello";
  readonly protocol: number;
  /** New with every start of a host. */
  readonly hostId: string;
  readonly dbName: string;
  readonly kind: HostKind;
  /** The host's user; absent: none. Hosts before users have none, and tabs before users ask for none. */
  readonly user?: string;
  readonly agents?: readonly string[];
  readonly exclusion: Exclusion;
  /** Absent: `keys`. */
  readonly keyForm?: KeyForm;
  readonly port: MessagePort;
}

/** Why the host cannot serve. */
export interface HelloFailed {
  readonly type: "failed";
  readonly protocol: number;
  readonly error: RunnerErrorData;
}

/** The host ends because its files were edited: start it again once its life lock has fallen. */
export interface HelloRetiring {
  readonly type: "retiring";
  readonly hostId: string;
  readonly dbName: string;
}

/** The host has ended the connection; it may have taken this tab for dead. */
export interface HostGone {
  readonly type: "gone";
  /** Somebody has locked the database: the tab must forget the key that it has kept. */
  readonly locked?: true;
}

/** A tab's answer to `hello`: the id of its life lock. */
export interface TabHello {
  readonly type: "tab";
  readonly tabId: string;
}

/** Results cross as data: comlink keeps only name, message and stack of a thrown error. */
export type Reply<T> = { readonly ok: T } | { readonly error: RunnerErrorData };

export type { Replay } from "../run/contract.js";

/** What a reader attaches to: a thread or one run, after a cursor or with its history in the form of `replay`. */
export interface AttachRequest {
  readonly threadId: string;
  /** The agent whose thread the reader shows; for the middleware of the runtime. */
  readonly agentId?: string;
  /** How far the reader has got. Absent: it has nothing and gets the prelude. */
  readonly after?: Cursor;
  /**
   * Whether the reader shows something of the thread, with a cursor or without: if the thread is gone, it gets an empty
   * prelude. Absent: known by the cursor, and the reader applies events as any AG-UI client does; others replace what they
   * show by a prelude.
   */
  readonly holds?: boolean;
  /** Default `snapshot`. */
  readonly replay?: Replay;
  /**
   * The most messages of a snapshot, the newest ones; at least 1. Those that a live run has open or has added at the
   * end come in addition. Absent: all.
   */
  readonly limit?: number;
  /** A snapshot of all messages starts with the run of each, see `runNames`: for a reader that holds nothing. */
  readonly named?: boolean;
  /** Whether it goes on with later runs, whoever starts them. Default false: it completes after the live run. */
  readonly follow?: boolean;
  /** Only this run, on any branch, from its first event or from `after` on, to its settled end. */
  readonly runId?: string;
}

/** A run as a tab asks for it. */
export interface RunRequest {
  readonly threadId: string;
  readonly agentId: string;
  readonly input: RunAgentInput;
  /**
   * `input.messages` has only messages that the thread does not have yet, and `input.state` is only set where the
   * caller set it: the host completes both. Absent: the input is complete, as any AG-UI client sends it. `at`: the
   * caller's cursor; where it is behind the run's start, the caller is sent the state too.
   */
  readonly partial?: { readonly stateSet: boolean; readonly at?: Cursor };
  /**
   * Ids of messages that the sender was shown and no longer has. Absent: nobody knows what it was shown, so a message
   * that it lacks is no edit.
   */
  readonly cut?: readonly string[];
  /** As that of `ThreadRunRequest`. */
  readonly branchBefore?: string;
  /**
   * The run goes on with the results of a thread's waiting tool calls, under the id that {@link ThreadToolCalls} gives: it
   * is refused (`call-over`) unless each has its result and no other run came first.
   */
  readonly afterToolCalls?: true;
  /** The messages to record with the run, if the caller has worked out which are new. */
  readonly persistedInputMessages?: readonly Message[];
  /**
   * What becomes of a live run of the thread, or of this one. Default: as the host's runner was made. `queue`: this one is
   * refused as `thread-busy`, also while others wait, a recovery among them; its host has it wait then.
   */
  readonly onBusy?: OnBusy;
}

/**
 * What becomes of a run while another run of its thread is live.
 * - `reject`: it is refused as `thread-busy`.
 * - `queue`: it waits in the log for its turn.
 * - `supersede`: the live run ends at once, and this one takes its place.
 */
export type OnBusy = "reject" | "queue" | "supersede";

/** What comes on an attachment's port, host to tab. */
export type Frame =
  /** A snapshot: events that rebuild everything up to `cursor`, a valid AG-UI sequence by themselves. */
  | {
      readonly type: "prelude";
      readonly cursor: Cursor;
      readonly events: readonly BaseEvent[];
      readonly live?: LiveRun;
      /** The thread has messages before the first one of the snapshot. */
      readonly earlier?: true;
      /** Why what the reader shows no longer exists: `unknown-thread`, `storage-deleted`. */
      readonly gone?: RunnerErrorData;
    }
  /** `base`: what this reader lacks of the run's base state. It belongs behind the first event, and is in no log. */
  | { readonly type: "chunk"; readonly chunk: Chunk; readonly base?: readonly BaseEvent[] }
  /** A run begins for this reader. Precedes its first chunk. */
  | { readonly type: "run"; readonly run: LiveRun }
  /** The run is settled and its lock is free. Its terminal event was in the chunk before. */
  | { readonly type: "settled"; readonly runIndex: number; readonly runId: string; readonly status: SettledStatus }
  /**
   * Why the end of a run that is over cannot be written now. A follower gets the end, with a snapshot, once it is
   * written.
   */
  | { readonly type: "lost"; readonly runIndex: number; readonly runId: string; readonly error: RunnerErrorData }
  /** What becomes of the last run, which ended in an error; to followers of a host that recovers runs. */
  | {
      readonly type: "recovery";
      readonly runIndex: number;
      readonly runId: string;
      readonly recovery?: RunRecovery;
    }
  /** A follower has caught up; nothing comes until the next run begins. */
  | { readonly type: "idle" }
  /** Nothing more comes. */
  | { readonly type: "end" }
  | { readonly type: "error"; readonly error: RunnerErrorData };

export interface LiveRun {
  readonly runIndex: number;
  readonly runId: string;
  readonly epoch: number;
  readonly agentId?: string;
  /** It goes on with a broken run. */
  readonly attempt?: Attempt;
  /** The name of the other device that executes it; absent: this one. */
  readonly device?: string;
  /** It continues no other run. Said of a run that was just started. */
  readonly begins?: true;
  /** It is in no log: no part of its thread, and its cursors are of no use. */
  readonly unrecorded?: true;
}

/** What comes on an attachment's port, tab to host. */
export type AttachControl =
  /** The tab has consumed this many frames more. */
  { readonly type: "credit"; readonly frames: number } | { readonly type: "detach" };

/** A stop as a tab asks for it. */
export interface StopCall {
  readonly threadId: string;
  readonly runId?: string;
  /** As that of {@link AttachRequest}. */
  readonly agentId?: string;
}

/** How this device and others keep their threads in step. */
export interface SyncState {
  /**
   * - `online`: connected to the servers.
   * - `offline`: not connected now, or the database is locked. Everything goes on here, and is sent later.
   * - `refused`: the servers do not accept the credentials, or the space is not encrypted as this device is.
   */
  readonly is: "connecting" | "online" | "offline" | "refused";
  /** Why it is not online, or why nothing can be sent, where that is known. */
  readonly message?: string;
  /** Everything that other devices have added is here, but for the runs of absent threads. */
  readonly isCurrent: boolean;
  /** How many absent threads are to come in the background, on a device that is new; absent: none. */
  readonly toCome?: number;
  /** Those that are online, this one first. */
  readonly devices: readonly OnlineDevice[];
}

/** A device that shares the threads, and was heard of within 15 seconds. */
export interface OnlineDevice {
  readonly id: string;
  /** For people. */
  readonly name: string;
  readonly isThis?: true;
  /** Of a server: ids of the agents that it runs for the others. */
  readonly agents?: readonly string[];
}

/** What comes on the port that watches the host, host to tab. */
export interface StatusFrame {
  readonly tabs: number;
  readonly attachments: number;
  readonly durability: Durability;
  readonly encryption?: LockState;
  readonly sync?: SyncState;
  readonly error?: RunnerErrorData;
}
