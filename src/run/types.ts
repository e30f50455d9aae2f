import type { BaseEvent } from "@ag-ui/client";
import type { RunnerErrorCode } from "./errors.js";

/** The status of a run in the log. All but `running` are final. */
export type RunStatus = "running" | "finished" | "errored" | "stopped" | "superseded" | "broken";

/**
 * Whether an encrypted database can be read. `new`: nothing in it is encrypted yet, and the first key that is given becomes
 * its key.
 */
export type LockState = "new" | "locked" | "unlocked";

/**
 * How a host is handed keys: as such; only passphrases, as bytes, where no `CryptoKey` can be sent to it; not at all, where
 * nothing is encrypted.
 */
export type KeyForm = "keys" | "bytes" | "nothing";

/** The final statuses of a run. */
export type SettledStatus = Exclude<RunStatus, "running">;

/** What a user changes about a thread in the list. Absent fields stay as they are. */
export interface ThreadUpdate {
  /** Later runs do not change it. */
  readonly title?: string;
  /** An archived thread is left out of lists that do not ask for it. */
  readonly archived?: boolean;
  /** Retention neither deletes nor trims a pinned thread. */
  readonly pinned?: boolean;
}

/**
 * How far a reader has read a thread: every event of run `runIndex` up to and including sequence number `seq`
 * (-1: none of it). `epoch` is the fencing number of that run as the reader saw it.
 */
export interface Cursor {
  readonly runIndex: number;
  readonly seq: number;
  readonly epoch: number;
}

/**
 * One entry of a packed chunk: one event, or adjacent deltas of one message, tool call or reasoning message joined into
 * one event. `cuts` are the lengths (UTF-16 code units) of the deltas that were joined, in order; absent for one event.
 */
export interface PackedEntry {
  readonly event: BaseEvent;
  readonly cuts?: readonly number[];
}

/** Consecutive events of one run, packed: the content of one record, and of one frame. */
export interface Chunk {
  readonly threadId: string;
  readonly runIndex: number;
  readonly epoch: number;
  /** Sequence number of the first event in it. */
  readonly firstSeq: number;
  /** Number of events in it (unpacked). */
  readonly count: number;
  readonly entries: readonly PackedEntry[];
  /** Arrival time of the first event, in ms since the Unix epoch. */
  readonly at: number;
  /** Arrival times of all events: pairs of (number of events, ms after `at`), flat. */
  readonly times: readonly number[];
  /** Constructs that are still open after the last event of the chunk; absent if there are none. */
  readonly open?: OpenConstructs;
}

/**
 * A tool call in {@link OpenConstructs}; `frontEnd` where the tool is one of `input.tools`, answered by the page;
 * `answered` where its TOOL_CALL_RESULT came before its TOOL_CALL_END, or a MESSAGES_SNAPSHOT left the call out.
 */
export interface OpenToolCall {
  readonly toolCallId: string;
  readonly frontEnd?: true;
  readonly answered?: true;
}

/** Constructs that a run has started and not yet ended. Plain data; lists in the order of their start. */
export interface OpenConstructs {
  readonly textMessages: readonly string[];
  readonly reasoningSpans: readonly string[];
  readonly reasoningMessages: readonly string[];
  /** Calls whose TOOL_CALL_END was not seen. */
  readonly toolCalls: readonly OpenToolCall[];
  /** Calls that ended and have no TOOL_CALL_RESULT. */
  readonly unanswered: readonly OpenToolCall[];
  readonly steps: readonly { readonly stepName: string; readonly subagentRunId?: string }[];
  readonly subagents: readonly string[];
}

/** Why a waiting run could not be started. */
export interface WaitingError {
  readonly code: RunnerErrorCode;
  readonly message: string;
}
