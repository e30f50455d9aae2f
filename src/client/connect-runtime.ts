import { Observable } from "rxjs";
import { randomId } from "../platform/ids.js";
import { RunnerError } from "../run/errors.js";
import { AGENT_NAMES, checkNames, type Names } from "../run/options.js";
import type { ThreadUpdate } from "../run/types.js";
import type { RelayedHost, RelayedRequest } from "../wire/relayed-request.js";
import type {
  MessagePage,
  MessagePageQuery,
  RuntimeStatus,
  ThreadChange,
  ThreadListQuery,
  ThreadSummary,
} from "../wire/shapes.js";
import { HostLink, type CallHeaders } from "./host-link.js";
import { LocalAgent, type LocalAgentConfig } from "./local-agent.js";
import { RemoteRunner } from "./remote-runner.js";
import type { RuntimeFetchOptions } from "./runtime-fetch.js";
import type { HostFactories } from "./start-host.js";
import { ThreadChanges } from "./thread-changes.js";

/** Where the host is, and how the tab connects to it. */
export interface ConnectRuntimeOptions {
  /** How to start a host, tried in this order: `shared`, `dedicated`, `page`. */
  readonly hosts: HostFactories;
  /** How long a host has to say hello before the next kind is tried, in ms. Default 15,000. */
  readonly startTimeoutMs?: number;
  /** How long a call of the host may take, in ms. Default 15,000. */
  readonly callTimeoutMs?: number;
  /**
   * Whether `hosts.shared` passes `extendedLifetime: true`, on which depends what `status$` says that a run survives.
   * Default true.
   */
  readonly extendedLifetime?: boolean;
  /**
   * What goes with each call of the host, as headers of the request that its middleware sees: who is signed in, for
   * example. A function is asked for each call. Never stored. Requests of `fetch` have their own headers and no others.
   */
  readonly headers?: CallHeaders;
}

/**
 * An agent as the class `AbstractAgent` of some version of `@ag-ui/client` has it: its private members make the class of each
 * copy of the client a type of its own, and a front end may bring a copy (CopilotKit does). It has nothing that a
 * {@link LocalAgent} has not.
 */
export type ClientAgent<A> = Pick<LocalAgent, "agentId" | "threadId" | "isRunning" | "abortRun" | "detachActiveRun"> & {
  [Name in PropertyKey & keyof A]?: Name extends keyof LocalAgent ? unknown : never;
};

/** What a {@link LocalAgent} has beside what the client's class has. */
export type LocalAgentOnly<A> = Omit<LocalAgent, keyof A>;
const NAMES: Names<ConnectRuntimeOptions> = {
  hosts: true,
  startTimeoutMs: true,
  callTimeoutMs: true,
  extendedLifetime: true,
  headers: true,
};
const AGENT: Names<LocalAgentConfig> = { ...AGENT_NAMES, messageLimit: true };
const HOSTS: Names<HostFactories> = { shared: true, dedicated: true, page: true };

/** A tab's connection to the runtime. */
export interface RuntimeConnection {
  /** How this tab stands with its host; replays the latest, never errors. */
  readonly status$: Observable<RuntimeStatus>;
  /**
   * An agent of the host.
   *
   * Also as the `AbstractAgent` of another copy of `@ag-ui/client`, where one is asked for: see {@link ClientAgent}.
   *
   * @param options `threadId`: default a fresh one. Other fields as AbstractAgent takes them.
   * @throws RunnerError `invalid-input` for an empty id, or a limit that is none. Whether the host has the agent shows at its first run.
   */
  agent<A extends ClientAgent<A> | undefined = LocalAgent>(
    agentId: string,
    options?: Omit<LocalAgentConfig, "agentId">,
  ): NonNullable<A> & LocalAgentOnly<NonNullable<A>>;
  readonly threads: ThreadsApi;
  /** The host's runner, for code that takes an `AgentRunner`. */
  runner(): RemoteRunner;
  /**
   * The HTTP face of the runtime, answered by the host: takes and gives what the platform's `fetch` does. A path is one of
   * this origin; redirects are handed out, not followed; a request's body is sent whole, at most 32 MB of it (else 413).
   * The answer begins whenever the host begins it: only that it takes the request is bounded, by `callTimeoutMs`.
   *
   * Where a host dies, GET and HEAD are asked again of the next one as long as no answer has begun.
   *
   * Errors: as the platform's where the request is none or its signal aborts; RunnerError `host-lost` (of the body, once
   * the answer has begun), `timeout`, `host-failed`, `closed`. Where there is no host, it resolves with a 503
   * `{ error, message }` that has the code of the RunnerError, like `no-host`.
   */
  fetch(input: RequestInfo | URL, init?: RequestInit, options?: RuntimeFetchOptions): Promise<Response>;
  /**
   * Hands a request of another context (a service worker) over to the host, which answers on `port`. Resolves with who
   * took it. What `answerServiceWorker` calls.
   *
   * Errors: RunnerError, why the host did not take it; with `host-lost` and `timeout` it may have, all the same.
   */
  relay(request: RelayedRequest, port: MessagePort): Promise<RelayedHost>;
  /** Lets go of the host. Runs go on where the host lives on without this tab. */
  close(): Promise<void>;
}

/** The threads of the host: read, watched, changed and deleted. */
export interface ThreadsApi {
  /** Threads, newest `updatedAt` first. */
  list(query?: ThreadListQuery): Promise<readonly ThreadSummary[]>;
  /**
   * A page of a thread's messages, without attaching: the last ones, or those before a message. None of an unknown thread.
   *
   * @param place `before`: a message's id, the first one's of the page after; `limit`: at most so many, default 50, at
   *   most 500. Errors: RunnerError `invalid-input` where the thread does not have the message `before` (any more)
   */
  messages(threadId: string, place?: Omit<MessagePageQuery, "threadId">): Promise<MessagePage>;
  /** A thread as it stands in the list; undefined for an unknown one. */
  get(threadId: string): Promise<ThreadSummary | undefined>;
  /** Gives it a title of 1 to 200 characters. Errors, as those below: RunnerError `unknown-thread`, `invalid-input`. */
  rename(threadId: string, title: string): Promise<ThreadSummary>;
  /** Takes it out of the list, or puts it back. */
  archive(threadId: string, archived?: boolean): Promise<ThreadSummary>;
  /** Keeps it from being evicted by limits, or no longer. */
  pin(threadId: string, pinned?: boolean): Promise<ThreadSummary>;
  /**
   * Deletes it; a live run is stopped first. Does nothing to an unknown one. Errors: RunnerError `thread-busy` where the run
   * could not be stopped in time
   */
  delete(threadId: string): Promise<void>;
  /**
   * Changes of the list, in whichever tab or host; begins with the next one: subscribe, then list. Errors with RunnerError
   * `refused`.
   */
  watch(): Observable<ThreadChange>;
}

/**
 * Connects this tab to the runtime: at once, in the background. Calls wait for the connection.
 *
 * @throws RunnerError `invalid-input` for options that there are not
 */
export function connectRuntime(options: ConnectRuntimeOptions): RuntimeConnection {
  checkNames(options, NAMES, { of: "connectRuntime", isRequired: true });
  checkNames(options.hosts, HOSTS, { of: "connectRuntime", within: "hosts", isRequired: true });
  const link = new HostLink({
    hosts: options.hosts,
    startTimeoutMs: options.startTimeoutMs ?? 15_000,
    callTimeoutMs: options.callTimeoutMs ?? 15_000,
    extendedLifetime: options.extendedLifetime ?? true,
    headers: options.headers ?? {},
  });
  const changes = new ThreadChanges(link);
  const update = (threadId: string, fields: ThreadUpdate): Promise<ThreadSummary> =>
    link.call("updateThread", { threadId, changes: fields });
  return {
    status$: link.status$.asObservable(),
    agent<A extends ClientAgent<A> | undefined>(agentId: string, config: Omit<LocalAgentConfig, "agentId"> = {}) {
      checkNames(config, AGENT, { of: "agent()" });
      const threadId = config.threadId ?? randomId();
      for (const [field, id] of Object.entries({ agentId, threadId })) {
        if (typeof id === "string" && id !== "") continue;
        throw new RunnerError("invalid-input", { field }, { message: `${field} must be a string that is not empty` });
      }
      // Its class differs from `A` only by name: see `ClientAgent`.
      return new LocalAgent(link, { ...config, agentId, threadId }) as LocalAgent & NonNullable<A>;
    },
    threads: {
      list: async (query = {}) => {
        await changes.watched();
        return link.call("listThreads", query);
      },
      messages: (threadId, place = {}) => link.call("messages", { ...place, threadId }),
      get: (threadId) => link.call("getThread", { threadId }),
      rename: (threadId, title) => update(threadId, { title }),
      archive: (threadId, archived = true) => update(threadId, { archived }),
      pin: (threadId, pinned = true) => update(threadId, { pinned }),
      delete: async (threadId) => {
        await link.call("deleteThread", { threadId });
      },
      watch: () => changes.changes$,
    },
    runner: () => new RemoteRunner(link),
    // Few pages ask by HTTP: how is loaded when one does. The request is read at the call.
    fetch: async (input, init, fetchOptions) => {
      const request = requestOf(input, init);
      return (await import("./runtime-fetch.js")).runtimeFetch(link, request, fetchOptions);
    },
    relay: async (request, port) => (await import("./runtime-fetch.js")).relay(link, request, port),
    close: () => link.close(),
  };
}

/** As the page's own `fetch` would read it, but paths begin at the origin. */
function requestOf(input: RequestInfo | URL, init?: RequestInit): Request {
  if (input instanceof Request) return new Request(input, init);
  const origin = (globalThis as { location?: Location }).location?.origin;
  // Neither Node nor a page of an opaque origin has one that an address could begin with.
  const base = origin === undefined || origin === "null" ? "http://localhost" : origin;
  return new Request(new URL(input, base), init);
}
