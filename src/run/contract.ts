import type { AbstractAgent, BaseEvent, Message, RunAgentInput, State } from "@ag-ui/client";
import type { Observable } from "rxjs";
import type { Cursor } from "./types.js";

/** Request of {@link AgentRunner.run}. The shape of CopilotKit's runtime 1.75. */
export interface AgentRunnerRunRequest {
  threadId: string;
  /** Runs as it is given: callers that share one agent between runs pass a clone. */
  agent: AbstractAgent;
  input: RunAgentInput;
  /** The messages to persist with the run, where the caller has worked out which are new. */
  persistedInputMessages?: Message[];
  /** Accepted and ignored; never stored. */
  authToken?: string;
  /** Accepted and ignored; an older name of `authToken`. */
  joinCode?: string;
}

/** What runners of this library can be asked for beyond {@link AgentRunnerRunRequest}. */
export interface ThreadRunRequest extends AgentRunnerRunRequest {
  /**
   * Starts a branch: this message and all behind it leave the path, and what of `input.messages` does not stand before it
   * comes instead. Errors: RunnerError `invalid-input` where the path has no such message.
   */
  branchBefore?: string;
}

/** Request of {@link AgentRunner.connect}. */
export interface AgentRunnerConnectRequest {
  threadId: string;
  agentId?: string;
  /** Never stored. Who passes them is taken for CopilotKit's runtime 1.75, and given events as clients before AG-UI 1.0 read them. */
  headers?: Record<string, string>;
  /** Accepted and ignored. */
  joinCode?: string;
}

/**
 * How a reader gets what was before: as messages and state (`snapshot`), as compacted events (`events`), or nothing of it
 * but the last run, event by event from its first (`last-run`; the state that it starts from comes after its RUN_STARTED).
 */
export type Replay = "snapshot" | "events" | "last-run";

/** What runners of this library can be asked for beyond {@link AgentRunnerConnectRequest}. */
export interface ThreadConnectRequest extends AgentRunnerConnectRequest {
  /**
   * How far the reader has got: it is handed only what comes after that. Where that place is not on the active path any
   * more, a snapshot.
   */
  after?: Cursor;
  /** For a reader without `after`. Default `events`. */
  replay?: Replay;
  /** Goes on with each later run, whoever starts it in whichever host, and never completes by itself. Default false. */
  follow?: boolean;
}

/** Some events of a thread, in order. */
export interface ConnectedEvents {
  readonly events: readonly BaseEvent[];
  /** Behind them: `after` of the connect that goes on from here. */
  readonly cursor: Cursor;
}

/** Request of {@link AgentRunner.isRunning}. */
export interface AgentRunnerIsRunningRequest {
  threadId: string;
}

/** Request of {@link AgentRunner.stop}. */
export interface AgentRunnerStopRequest {
  threadId: string;
  /** Names the run to stop; another live run is left alone. */
  runId?: string;
}

/** A thread as CopilotKit's front end reads it. Organisations and people are its service's. */
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
 * What a runner may tell of its threads beyond the contract, for the thread routes of CopilotKit's runtime 1.75, which awaits
 * none of it.
 */
export interface ThreadEndpointRunner extends AgentRunner {
  readonly ɵsupportsLocalThreadEndpoints: true;
  /** All of them, newest first. */
  listThreads(): readonly ThreadRecord[] | Promise<readonly ThreadRecord[]>;
  getThreadMessages(threadId: string): readonly Message[] | Promise<readonly Message[]>;
  getThreadEvents(threadId: string): readonly BaseEvent[] | Promise<readonly BaseEvent[]>;
  /** Null where it has none. */
  getThreadState(threadId: string): State | null | Promise<State | null>;
  clearThreads(): unknown;
}

/** Whether it says so, in CopilotKit's words. */
export function answersThreadEndpoints(runner: AgentRunner): runner is ThreadEndpointRunner {
  return (runner as Partial<ThreadEndpointRunner>).ɵsupportsLocalThreadEndpoints === true;
}

/**
 * Runs agents and keeps their threads. Structurally the `AgentRunner` of CopilotKit's runtime 1.75, both ways.
 *
 * - `run` must claim the thread and start at the call, subscribed or not, and must throw `thread-busy` before it
 *   returns where this runner itself has a live run of the thread. Each subscriber must get the run from its first
 *   event; unsubscribing must never stop it.
 * - `connect` must give the thread's history, then its live run if there is one, then complete.
 * - `stop` must be idempotent and must resolve without waiting for the end.
 */
export interface AgentRunner {
  run(request: AgentRunnerRunRequest): Observable<BaseEvent>;
  connect(request: AgentRunnerConnectRequest): Observable<BaseEvent>;
  /** True also for a live run of another host. */
  isRunning(request: AgentRunnerIsRunningRequest): Promise<boolean>;
  /**
   * `true` when this call requested the stop of the live run; `false` when nothing runs, another run runs, or it is
   * stopping already; custom runners may say nothing.
   */
  stop(request: AgentRunnerStopRequest): Promise<boolean | undefined>;
}
