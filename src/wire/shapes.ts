import type { BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { RunnerErrorCode, RunnerErrorDetails } from "../run/errors.js";
import type { Chunk, Cursor, RunStatus, SettledStatus } from "../run/types.js";

/**
 * What crosses from a tab to its host and back. History of PROTOCOL_VERSION:
 * 1: hello, comlink calls of {@link HostApi}, frames with credit.
 */
export const PROTOCOL_VERSION = 1;

/** Which context runs the agents. */
export type HostKind = "shared-worker" | "worker" | "page";

/** `durable`: committed to IndexedDB before it is shown. `memory`: gone with the host. */
export type Durability = "durable" | "memory";

/**
 * What a live run survives besides an unsubscribe. `tab-close`: the closing of its tab while another tab is open.
 * `reload`: also the reload of the only tab. `nothing`: it ends with the tab that hosts it.
 */
export type Survives = "nothing" | "tab-close" | "reload";

/** How a tab stands with its host. One value of `runtime.status$`. */
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
      /** Ids of the agents that the host has. */
      readonly agents: readonly string[];
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
  /** How the active run ended, where it has. */
  readonly lastStatus?: SettledStatus;
}

export interface ThreadListQuery {
  /** At most this many, newest `updatedAt` first. Default 50, at most 500. */
  readonly limit?: number;
  /** Only threads with a smaller `updatedAt`: the last one's of the page before. */
  readonly before?: number;
  readonly agentId?: string;
  /** Default false: archived threads are left out. */
  readonly archived?: boolean;
}

export interface RunListQuery {
  readonly status?: RunStatus;
  /** At most this many, newest first. Default 50, at most 500. */
  readonly limit?: number;
  /** Only runs with a smaller runIndex: the last one's of the page before. */
  readonly before?: number;
}

/** One change of the list of threads, in whichever tab or host it was made. */
export type ThreadChange =
  | { readonly type: "changed"; readonly thread: ThreadSummary }
  | { readonly type: "deleted"; readonly threadId: string };

/** A RunnerError as data. */
export interface RunnerErrorData {
  readonly code: RunnerErrorCode;
  readonly message: string;
  readonly details: RunnerErrorDetails;
}

/** A run in the log, without its events. */
export interface RunSummary {
  readonly threadId: string;
  readonly runId: string;
  readonly runIndex: number;
  /** The run that it continues; null for the first of a path. */
  readonly prevRunIndex: number | null;
  /** The run that the caller named as its parent, else the one that was the thread's last when it started. */
  readonly parentRunId?: string;
  readonly agentId?: string;
  readonly status: RunStatus;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly eventCount?: number;
}

/** `hello` comes from the host unasked; `port` is the comlink endpoint of {@link HostApi}. */
export interface Hello {
  readonly type: "hello";
  readonly protocol: number;
  readonly hostId: string;
  readonly bootId: string;
  readonly dbName: string;
  readonly kind: HostKind;
  readonly agents: readonly string[];
  readonly port: MessagePort;
}

/** The host cannot serve: why. */
export interface HelloFailed {
  readonly type: "failed";
  readonly protocol: number;
  readonly error: RunnerErrorData;
}

/** The host ends because its files were edited: start it again once its life lock is free. */
export interface HelloRetiring {
  readonly type: "retiring";
  readonly hostId: string;
  readonly dbName: string;
}

/** A tab's answer to `hello`: the id in whose name it holds its life lock. */
export interface TabHello {
  readonly type: "tab";
  readonly tabId: string;
}

/** Results cross as data: comlink keeps only name, message and stack of a thrown error. */
export type Reply<T> = { readonly ok: T } | { readonly error: RunnerErrorData };

/** The settled history as messages and state (`snapshot`), or as compacted events. */
export type Replay = "snapshot" | "events";

/** How a reader wants the history: not at all but what is missing after `after`, or as `replay` says. */
export interface AttachRequest {
  readonly threadId: string;
  /** How far the reader has got. Absent: it has nothing and gets the prelude. */
  readonly after?: Cursor;
  /** Default `snapshot`. */
  readonly replay?: Replay;
  /** Go on with later runs, whoever starts them. Default false: complete after the live run. */
  readonly follow?: boolean;
}

/** A run as a tab asks for it. */
export interface RunRequest {
  readonly threadId: string;
  readonly agentId: string;
  readonly input: RunAgentInput;
  /**
   * `input.messages` are only those that the thread does not have yet, and `input.state` is only given where the
   * caller set it: the host completes both. Absent: the input is whole, as any AG-UI client sends it.
   */
  readonly partial?: { readonly stateSet: boolean };
}

/** What comes on an attachment's port, host to tab. */
export type Frame =
  /** A snapshot: events that rebuild everything up to `cursor`, a valid AG-UI sequence of their own. */
  | {
      readonly type: "prelude";
      readonly cursor: Cursor;
      readonly events: readonly BaseEvent[];
      readonly live?: LiveRun;
    }
  | { readonly type: "chunk"; readonly chunk: Chunk }
  /** A run begins for this reader. Precedes its first chunk. */
  | { readonly type: "run"; readonly run: LiveRun }
  /** The run is settled and its lock is free. Its terminal event was in the chunk before. */
  | { readonly type: "settled"; readonly runIndex: number; readonly runId: string; readonly status: SettledStatus }
  /** A follower has everything; nothing comes until the next run begins. */
  | { readonly type: "idle" }
  /** Nothing more comes. */
  | { readonly type: "end" }
  | { readonly type: "error"; readonly error: RunnerErrorData };

export interface LiveRun {
  readonly runIndex: number;
  readonly runId: string;
  readonly epoch: number;
  readonly agentId?: string;
}

/** What comes on an attachment's port, tab to host. */
export type AttachControl =
  /** The tab has consumed this many frames more. */
  { readonly type: "credit"; readonly frames: number } | { readonly type: "detach" };

/** What comes on the watch port, host to tab. */
export type WatchFrame =
  | { readonly type: "threads"; readonly change: ThreadChange }
  | { readonly type: "status"; readonly tabs: number; readonly durability: Durability };
