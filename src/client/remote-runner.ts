import type { BaseEvent, Message, State } from "@ag-ui/client";
import { defer, from, map, mergeMap, Observable, throwError } from "rxjs";
import type {
  AgentRunner,
  AgentRunnerIsRunningRequest,
  AgentRunnerStopRequest,
  ConnectedEvents,
  ThreadConnectRequest,
  ThreadRunRequest,
} from "../run/contract.js";
import { defined } from "../platform/defined.js";
import { RunnerError } from "../run/errors.js";
import { checkKind, ID, LIST, OBJECT } from "../run/options.js";
import type { PlacedEvent } from "../run/pack.js";
import type { ThreadUpdate } from "../run/types.js";
import type {
  NamedRun,
  RunEventsRequest,
  RunListQuery,
  RunRequest,
  RunSummary,
  ThreadListQuery,
  ThreadSummary,
} from "../wire/shapes.js";
import type { HostLink } from "./host-link.js";
import { preloadStreams, streams, withStreams } from "./late-streams.js";

/** Request of {@link RemoteRunner.run}: that of `AgentRunner`, but its agent is only named. */
export interface RemoteRunRequest extends Omit<ThreadRunRequest, "agent"> {
  /** Names an agent of the host by its `agentId`: a `LocalAgent`, any AbstractAgent that has one, or `{ agentId }`. */
  readonly agent: { readonly agentId?: string | undefined };
}

/**
 * The host's runner, for code in a tab that takes an `AgentRunner`. It runs the host's agents by their ids, never the
 * agent object that it is given. If the host dies, calls and streams go on in the next one.
 *
 * No call throws: errors, refusals too, come as RunnerError through the Observable or Promise.
 */
export class RemoteRunner implements AgentRunner {
  /** @hidden Made by `connectRuntime`. */
  constructor(private readonly link: HostLink) {
    checkKind("link", link, OBJECT);
    preloadStreams();
  }

  /**
   * Starts a run in the host, at the call.
   *
   * @returns the run's events from its first, for each subscriber; completes when the run is settled and the thread is
   *   free. Unsubscribing does not stop the run. Errors: RunnerError `thread-busy`, `run-exists`, `unknown-agent`,
   *   `invalid-input`, `deleted` (to subscribers after the run has left the log), a storage code, or one of the
   *   connection
   */
  run(request: RemoteRunRequest): Observable<BaseEvent> {
    let asked: RunRequest;
    try {
      asked = toRunRequest(request);
    } catch (error) {
      return throwError(() => error);
    }
    const { made } = streams;
    if (made !== undefined) return made.remoteRun(this.link, asked);
    const started = streams.get().then(({ remoteRun }) => remoteRun(this.link, asked));
    // Without a subscriber nobody is told of a failure.
    started.catch(() => undefined);
    return from(started).pipe(mergeMap((events$) => events$));
  }

  /**
   * The thread's history as compacted AG-UI events, then its live run, then completes; empty for an unknown thread. The
   * request may ask for less, or for later runs too. Errors as `connect` of the runner.
   */
  connect(request: ThreadConnectRequest): Observable<BaseEvent> {
    return this.connectWithCursor(request).pipe(mergeMap(({ events }) => events));
  }

  /** As {@link connect}, with cursors: the last one is the `after` of the reader's next connect. */
  connectWithCursor(request: ThreadConnectRequest): Observable<ConnectedEvents> {
    return defer(() => {
      const { threadId, agentId, after, replay = "events", follow = false } = named(request);
      return withStreams(({ attachFrames, threadEvents }) =>
        attachFrames(this.link, { threadId, agentId, after, replay, follow }).pipe(
          map(threadEvents(threadId)),
          mergeMap((part) => (part === undefined ? [] : [part])),
        ),
      );
    });
  }

  async isRunning(request: AgentRunnerIsRunningRequest): Promise<boolean> {
    const { threadId } = named(request);
    return this.link.call("isRunning", { threadId });
  }

  async stop(request: AgentRunnerStopRequest): Promise<boolean> {
    const { threadId, runId } = named(request);
    return this.link.call("stop", { threadId, ...(runId !== undefined && { runId }) });
  }

  /** Threads, newest first. */
  listThreads(query: ThreadListQuery = {}): Promise<readonly ThreadSummary[]> {
    return this.link.call("listThreads", query);
  }

  /** A thread's runs, newest first, those of other branches included. */
  async listRuns(threadId: string, query: RunListQuery = {}): Promise<readonly RunSummary[]> {
    return this.link.call("listRuns", named({ ...query, threadId }));
  }

  /**
   * A run by its id; undefined for an unknown one.
   *
   * Errors: RunnerError `invalid-input` if several threads have a run with this id and no `threadId` is given.
   */
  getRun(runId: string, name: Omit<NamedRun, "runId"> = {}): Promise<RunSummary | undefined> {
    return this.link.call("getRun", { ...name, runId });
  }

  /**
   * The committed events of a run with their sequence numbers and arrival times (ms since the Unix epoch), each as it
   * was recorded; empty for an unknown run, or one that a limit cut off. Errors as {@link getRun}.
   */
  getRunEvents(runId: string, query: Omit<RunEventsRequest, "runId"> = {}): Promise<readonly PlacedEvent[]> {
    return this.link.call("getRunEvents", { ...query, runId });
  }

  /** The messages of the active path, including those of the live run so far; empty for an unknown thread. */
  async getThreadMessages(threadId: string): Promise<readonly Message[]> {
    return this.link.call("getThreadMessages", named({ threadId }));
  }

  /** The compacted events of the active path up to now; empty for an unknown thread. */
  async getThreadEvents(threadId: string): Promise<readonly BaseEvent[]> {
    return this.link.call("getThreadEvents", named({ threadId }));
  }

  /** The state of the active path, including the live run's changes so far; undefined for an unknown thread. */
  async getThreadState(threadId: string): Promise<State | undefined> {
    return this.link.call("getThreadState", named({ threadId }));
  }

  /** A thread as in the list; undefined for an unknown one. */
  async getThread(threadId: string): Promise<ThreadSummary | undefined> {
    return this.link.call("getThread", named({ threadId }));
  }

  /** Renames, archives or pins a thread. Errors: RunnerError `unknown-thread`, `invalid-input`. */
  async updateThread(threadId: string, changes: ThreadUpdate): Promise<ThreadSummary> {
    return this.link.call("updateThread", named({ threadId, changes }));
  }

  /**
   * Takes up the branch that a run ends. Errors: RunnerError `unknown-thread`, `invalid-input`, `thread-busy`.
   *
   * @param runIndex tells runs of one id apart. Default: the newest one
   */
  async activateRun(threadId: string, runId: string, runIndex?: number): Promise<void> {
    await this.link.call("activateRun", named({ threadId, runId, ...(runIndex !== undefined && { runIndex }) }));
  }

  /**
   * Deletes a thread; a live run is stopped first.
   *
   * @returns false for an unknown one. Errors: RunnerError `thread-busy` if the run could not be stopped in time
   */
  async deleteThread(threadId: string): Promise<boolean> {
    return this.link.call("deleteThread", named({ threadId }));
  }

  /**
   * Deletes every thread of the host's database, pinned ones too. Live runs are stopped first.
   *
   * @returns how many were deleted. Errors: RunnerError `thread-busy` if a run could not be stopped in time
   */
  clearThreads(): Promise<number> {
    return this.link.call("clearThreads");
  }
}

/** Checks what names the thread before a host is asked: without a host, the error would be about the host. */
function named<T extends { readonly threadId: string }>(request: T): T {
  checkKind("request", request, OBJECT);
  checkKind("threadId", request.threadId, ID);
  return request;
}

/** What the host is asked for: a copy, because it is sent once there is a host, and the caller may change its own. */
function toRunRequest(given: RemoteRunRequest): RunRequest {
  const { threadId, agent, input, persistedInputMessages, branchBefore } = named(given);
  checkKind("input", input, OBJECT);
  checkKind("runId", input.runId, ID);
  checkKind("input.messages", input.messages, LIST);
  // A JavaScript caller may pass none.
  const agentId = (agent as RemoteRunRequest["agent"] | undefined)?.agentId;
  if (agentId === undefined) {
    const message = "The agent must have the agentId of an agent of the host";
    throw new RunnerError("invalid-input", { field: "agent.agentId" }, { message });
  }
  const request: RunRequest = {
    threadId,
    agentId,
    input,
    ...defined({ persistedInputMessages, branchBefore }),
  };
  try {
    return structuredClone(request);
  } catch (cause) {
    throw new RunnerError("invalid-input", { field: "input" }, { message: "input must be plain data", cause });
  }
}
