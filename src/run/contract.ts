import type { AbstractAgent, BaseEvent, Message, RunAgentInput, State } from "@ag-ui/client";
import type { Observable } from "rxjs";
import type { Cursor } from "./types.js";

/** Request of {@link AgentRunner.run}, in the shape of CopilotKit's runtime 1.75. */
export interface AgentRunnerRunRequest {
  threadId: string;
  /** This object is run itself: callers that share one agent between runs pass a clone. */
  agent: AbstractAgent;
  input: RunAgentInput;
  /** The messages to persist with the run, where the caller has worked out which are new. */
  persistedInputMessages?: Message[];
  /** Accepted and ignored; never stored. */
  authToken?: string;
  /** Accepted and ignored; an older name of `authToken`. */
  joinCode?: string;
}

/** What this library's runners take in addition to {@link AgentRunnerRunRequest}. */
export interface ThreadRunRequest extends AgentRunnerRunRequest {
  /**
   * Starts a branch: this message and all after it leave the active path, and the messages of `input.messages` that do
   * not come before it take their place. Errors: RunnerError `invalid-input` if the path has no such message.
   */
  branchBefore?: string;
}

/** Request of {@link AgentRunner.connect}. */
export interface AgentRunnerConnectRequest {
  threadId: string;
  agentId?: string;
  /**
   * Never stored. A caller that passes them is taken for CopilotKit's runtime 1.75, and gets events in the form of AG-UI
   * before 1.0.
   */
  headers?: Record<string, string>;
  /** Accepted and ignored. */
  joinCode?: string;
}

/**
 * How a reader gets the history: as messages and state (`snapshot`), as compacted events (`events`), or only the last
 * run, event by event from its first (`last-run`; the state that it starts from comes after its RUN_STARTED).
 */
export type Replay = "snapshot" | "events" | "last-run";

/** What this library's runners take in addition to {@link AgentRunnerConnectRequest}. */
export interface ThreadConnectRequest extends AgentRunnerConnectRequest {
  /**
   * The reader's cursor: it gets only what comes after. If that place is no longer on the active path, it gets a
   * snapshot.
   */
  after?: Cursor;
  /** For a reader without `after`. Default `events`. */
  replay?: Replay;
  /** Continues with every later run, started by anyone in any host, and never completes by itself. Default false. */
  follow?: boolean;
}

/** Some events of a thread, in order. */
export interface ConnectedEvents {
  readonly events: readonly BaseEvent[];
  /** The cursor after them: pass it as `after` to continue from here. */
  readonly cursor: Cursor;
}

/** Request of {@link AgentRunner.isRunning}. */
export interface AgentRunnerIsRunningRequest {
  threadId: string;
}

/** Request of {@link AgentRunner.stop}. */
export interface AgentRunnerStopRequest {
  threadId: string;
  /** The run to stop; another live run is left alone. Default: the live run. */
  runId?: string;
}

/** A thread as CopilotKit's front end reads it. Its service adds organisations and users. */
export interface ThreadRecord {
  readonly id: string;
  readonly name: string | null;
  readonly agentId: string;
  readonly organizationId: string;
  readonly createdById: string;
  readonly archived: boolean;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly updatedAt: string;
}

/**
 * Optional reads of a runner beyond the contract, for the thread routes of CopilotKit's runtime 1.75. They are synchronous:
 * that runtime awaits none of them.
 */
export interface ThreadEndpointRunner extends AgentRunner {
  readonly ɵsupportsLocalThreadEndpoints: true;
  /** All of them, newest first. */
  listThreads(): readonly ThreadRecord[] | Promise<readonly ThreadRecord[]>;
  getThreadMessages(threadId: string): readonly Message[] | Promise<readonly Message[]>;
  getThreadEvents(threadId: string): readonly BaseEvent[] | Promise<readonly BaseEvent[]>;
  /** `null` if it has none. */
  getThreadState(threadId: string): State | null | Promise<State | null>;
  clearThreads(): unknown;
}

/** The flag by which CopilotKit's runtime knows that the reads are there. */
export function answersThreadEndpoints(runner: AgentRunner): runner is ThreadEndpointRunner {
  return (runner as Partial<ThreadEndpointRunner>).ɵsupportsLocalThreadEndpoints === true;
}

/**
 * Runs agents and keeps their threads. Structurally the `AgentRunner` of CopilotKit's runtime 1.75, both ways.
 *
 * - `run` must claim the thread and start when it is called, subscribed or not, and must throw `thread-busy` before it
 *   returns if this runner itself has a live run of the thread. Each subscriber must get the run from its first event;
 *   unsubscribing must never stop it.
 * - `connect` must give the thread's history, then its live run if there is one, then complete.
 * - `stop` must be idempotent and must resolve without waiting for the end.
 */
export interface AgentRunner {
  run(request: AgentRunnerRunRequest): Observable<BaseEvent>;
  connect(request: AgentRunnerConnectRequest): Observable<BaseEvent>;
  /** True also for a live run of another host. */
  isRunning(request: AgentRunnerIsRunningRequest): Promise<boolean>;
  /**
   * `true` if this call requested the stop of the live run; `false` if no run is live, another run is, or it is stopping
   * already; custom runners may return nothing.
   */
  stop(request: AgentRunnerStopRequest): Promise<boolean | undefined>;
}
