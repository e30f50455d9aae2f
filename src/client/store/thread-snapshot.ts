import type { Interrupt, Message, State } from "@ag-ui/core";
import type { RunAgentParameters } from "@ag-ui/client";
import type { WaitingRun } from "../../wire/waiting-shapes.js";
import type { LocalAgentConfig, LocalRunParameters } from "../local-agent.js";
import type { RunFailure, ThreadRun } from "../thread-run.js";
import { NO_CALLS, type FrontendTools, type ShownToolCall } from "../tools/frontend-tools.js";

/** A thread as it is shown now. Messages that did not change are the same objects as before. */
export interface ThreadSnapshot {
  readonly threadId: string;
  /**
   * `loading` until the history was read once; `failed`: it cannot be read, `error` says why. It is read again after a
   * second, and then less often.
   */
  readonly status: "loading" | "ready" | "failed";
  readonly messages: readonly Message[];
  readonly state: State;
  /** The live run, of whichever tab; or how the last one ended. */
  readonly run: ThreadRun;
  /** A call of this store waits for the host: its run has not begun yet. */
  readonly isSending: boolean;
  /** A stop of the live run was requested here. */
  readonly isStopping: boolean;
  /** Open interrupts: the thread waits for `respond` of its store. Empty while a run is live. */
  readonly interrupts: readonly Interrupt[];
  /** Calls of front-end tools that wait for a tab or for an answer, or whose results wait for one another. */
  readonly toolCalls: readonly ShownToolCall[];
  /** Runs of the thread that wait for their turn, in order, whichever tab asked for them; their messages are not in `messages`. */
  readonly waiting: readonly WaitingRun[];
  /** Whether there are messages before the first one, and whether they are being loaded. */
  readonly earlier: "none" | "more" | "loading";
  /**
   * Why the last call failed, the history cannot be read, or calls of front-end tools do not go on; gone with the next call,
   * or when that has passed. Runs that fail: `run.last.error`.
   */
  readonly error: Error | undefined;
  /**
   * What to tell the reader: `error`, or why the thread is gone, or why the last run failed. A stopped run is no failure; one
   * that begins leaves those before it behind.
   */
  readonly failure: RunFailure | undefined;
}

/** Which thread, and which agent runs in it. */
export interface ThreadStoreOptions extends Pick<LocalAgentConfig, "agentId" | "messageLimit"> {
  /** Default a fresh one: a thread that begins with the first message. */
  readonly threadId?: string;
  /** The tools that this page offers: each run is given them, and their calls are run here. Default none. */
  readonly tools?: FrontendTools;
}

/** What a run is given besides the messages. */
export interface RunOptions extends Pick<RunAgentParameters, "tools" | "context" | "forwardedProps"> {
  /** Who runs, in this run and in later ones that name nobody. Default the store's agent. */
  readonly agentId?: string;
}

export interface SendOptions extends RunOptions, Pick<LocalRunParameters, "onBusy" | "whenOffline"> {
  /** Of the message: an app that keeps what is typed knows by it whether the thread has it. Default a fresh one. */
  readonly messageId?: string;
  /** Sent behind the text, each as a content part of its media type. */
  readonly attachments?: readonly Blob[];
}

export const NO_INTERRUPTS: readonly Interrupt[] = [];
export const NONE_WAITS: readonly WaitingRun[] = [];

/** A thread that nothing is known of yet. */
export function emptyThread(threadId: string): ThreadSnapshot {
  return {
    threadId,
    status: "loading",
    messages: [],
    state: {},
    run: { is: "idle" },
    isSending: false,
    isStopping: false,
    interrupts: NO_INTERRUPTS,
    toolCalls: NO_CALLS,
    waiting: NONE_WAITS,
    earlier: "none",
    error: undefined,
    failure: undefined,
  };
}
