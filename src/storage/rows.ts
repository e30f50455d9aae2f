import type { BaseEvent, Interrupt, Message, RunAgentInput, State } from "@ag-ui/client";
import type { Attempt } from "../run/hosted.js";
import type { RecoveryNote } from "../run/recovery.js";
import type { Chunk, OpenConstructs, RunStatus, SettledStatus } from "../run/types.js";
import type { LeftByRun, PendingToolCalls } from "./pending-tool-calls.js";
import type { RecoveryWaiting, TurnRequest } from "./waiting.js";

/*
 * What the log is made of, in the form in which every store takes it and gives it out.
 */

/** One of the devices that keep their threads in step. */
export interface DeviceName {
  readonly id: string;
  /** For people. */
  readonly name: string;
}

/** The device that asked a server for a run, and the front-end tools that its tabs have. */
export interface Asker {
  readonly id: string;
  /** Names. */
  readonly tools: readonly string[];
}

/** The head of a thread: its live run and holder, and its active run. */
export interface ThreadHead {
  readonly threadId: string;
  /** The fencing number of the thread's newest run or takeover. */
  readonly epoch: number;
  /** How many runs the thread ever had: the next `runIndex`. */
  readonly runCount: number;
  /** The run at the end of the active path. */
  readonly activeRunIndex: number;
  readonly live?: { readonly runIndex: number; readonly runId: string; readonly device?: DeviceName };
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
  /** The other device that executed it; absent: this one. */
  readonly device?: DeviceName;
  readonly asker?: Asker;
  /**
   * Of a run that answers an earlier one: tells it from others of its id, on all devices, since it may have that of the run
   * which asked. Older builds did not write it.
   */
  readonly answerId?: string;
  /** The end of the path when it began, where it does not continue that one. Older builds did not write it. */
  readonly leaves?: number;
  /** Its events from seq `from` on were replaced under this epoch: what readers saw of them before does not count. */
  readonly revised?: { readonly epoch: number; readonly from: number };
}

/** What tells a run from all others of its thread. `answerId`: see {@link RunRow}. */
export interface NamedRun {
  readonly runId: string;
  readonly answerId?: string | undefined;
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
  /** When its thread has changed, for the list of threads: the clock of `device` may be wrong. Absent: at `startedAt`. */
  readonly listedAt?: number;
  /** `activeRunIndex` and `epoch` of the head that the caller's base was read at; undefined for a new thread. */
  readonly base: { readonly activeRunIndex: number; readonly epoch: number } | undefined;
  /** The pending tool calls whose answers are in the input: all that are answered, if it continues the path. */
  readonly toolCallIds?: readonly string[];
  readonly prevRunIndex: number | null;
  readonly input: PersistedInput;
  readonly fingerprint: string;
  /** See {@link RunRow.answerId}: a settled run with the same id is from then on found by its fingerprint, this one by id. */
  readonly answerId?: string;
  /** For a thread that has none yet. */
  readonly title: string;
  readonly attempt?: Attempt;
  /** Another device executes it; this host writes down what it is told. */
  readonly device?: DeviceName;
  readonly asker?: Asker;
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
  /** See {@link ClaimRequest}. Absent: at `endedAt`. */
  readonly listedAt?: number;
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
  /** Somebody set the title. */
  readonly named?: true;
  readonly agentId?: string;
  readonly archived: boolean;
  readonly pinned: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly runCount: number;
  readonly lastStatus?: SettledStatus;
  /** Its runs have not come from the other devices yet. */
  readonly absent?: true;
}
