import { share, type Observable } from "rxjs";
import { randomId } from "../platform/ids.js";
import { loaded } from "../run/loaded.js";
import {
  AGENT_NAMES,
  checkKind,
  checkNames,
  FLAG,
  FUNCTION,
  ID,
  OBJECT,
  TIMEOUT,
  USER,
  type Names,
} from "../run/options.js";
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
import { encryptionApi, type EncryptionApi } from "./encryption-api.js";
import { HostLink, type ConnectRuntimeOptions } from "./host-link.js";
import { hostStream } from "./host-stream.js";
import { LocalAgent, type LocalAgentConfig } from "./local-agent.js";
import { RemoteRunner } from "./remote-runner.js";
import { offerModel } from "./offer-model.js";
import type { OfferedModel } from "./page-model.js";
import type { RuntimeFetchOptions } from "./runtime-fetch.js";
import type { HostFactories } from "./start-host.js";
import { waitingApi, type WaitingApi } from "./waiting/waiting-api.js";
import { toolCallsApi, type ToolCallsApi } from "./tools/tool-calls-api.js";

/**
 * The `AbstractAgent` of any copy of `@ag-ui/client`: its private members make the class of each copy a type of its
 * own, and a front end may bring a copy (CopilotKit does). It has nothing that a {@link LocalAgent} lacks.
 */
export type ClientAgent<A> = Pick<LocalAgent, "agentId" | "threadId" | "isRunning" | "abortRun" | "detachActiveRun"> & {
  [Name in PropertyKey & keyof A]?: Name extends keyof LocalAgent ? unknown : never;
};

/** What a {@link LocalAgent} has in addition to the client's class. */
export type LocalAgentOnly<A> = Omit<LocalAgent, keyof A>;

const NAMES: Names<ConnectRuntimeOptions> = {
  hosts: true,
  user: USER,
  startTimeoutMs: TIMEOUT,
  callTimeoutMs: TIMEOUT,
  extendedLifetime: FLAG,
  headers: [(given) => FUNCTION[0](given) || OBJECT[0](given), "an object or a function"],
};
const AGENT: Names<LocalAgentConfig> = {
  ...AGENT_NAMES,
  historyByRun: FLAG,
  messageLimit: [(given) => Number.isSafeInteger(given) && Number(given) >= 1, "a whole number, at least 1"],
};
const HOSTS: Names<HostFactories> = { shared: FUNCTION, dedicated: FUNCTION, page: FUNCTION };

/** A tab's connection to the runtime. */
export interface RuntimeConnection {
  /** The user of this tab, where it has one: that of its host. */
  readonly user?: string;
  /** The tab's connection to its host; replays the latest value, never errors, and completes with `closed`. */
  readonly status$: Observable<RuntimeStatus>;
  /**
   * An agent of the host; on request typed as the `AbstractAgent` of another copy of `@ag-ui/client`, see
   * {@link ClientAgent}. Whether the host has the agent shows at its first run.
   *
   * @param options `threadId`: default a fresh one. Other fields as AbstractAgent takes them.
   * @throws RunnerError `invalid-input` for an empty id or an invalid limit
   */
  agent<A extends ClientAgent<A> | undefined = LocalAgent>(
    agentId: string,
    options?: Omit<LocalAgentConfig, "agentId">,
  ): NonNullable<A> & LocalAgentOnly<NonNullable<A>>;
  readonly threads: ThreadsApi;
  /** The key of an encrypted database. */
  readonly encryption: EncryptionApi;
  /** Tool calls that wait for the front end. */
  readonly toolCalls: ToolCallsApi;
  /**
   * Offers a language model that only this page can run (the browser's own, WebGPU) to the agents of the host, which ask
   * for it by `tabModel(name)` of `ag-ui-local-runtime/ai`. Several tabs may offer one name: the host chooses. Every
   * prompt that the agents send to the model comes to this page, whichever tab's run it is of.
   *
   * @param name what agents call it, 1 to 200 characters
   * @returns ends the offer; what the model answers just then goes on in another tab where one can
   * @throws RunnerError `invalid-input`
   */
  offerModel(name: string, offer: OfferedModel): () => void;
  /** Runs that wait in the log for their turn. */
  readonly waiting: WaitingApi;
  /** The host's runner, for code that takes an `AgentRunner`. */
  runner(): RemoteRunner;
  /**
   * The HTTP face of the runtime, answered by the host; arguments and result as those of the platform's `fetch`. Paths
   * are of this origin; redirects are returned, not followed; a request's body is sent whole, at most 32 MB (else 413).
   * `callTimeoutMs` bounds only how long the host may take to accept the request, not when the answer begins.
   *
   * If the host dies before the answer begins, GET and HEAD are sent to the next one, at most three times in all.
   *
   * Errors: as the platform's for an invalid request or an aborted signal; RunnerError `host-lost` (of the body, once
   * the answer has begun), `timeout`, `host-failed`, `closed`. Without a host it resolves with a 503 `{ error, message
   * }`, `error` being the code of the RunnerError, such as `no-host`.
   */
  fetch(input: RequestInfo | URL, init?: RequestInit, options?: RuntimeFetchOptions): Promise<Response>;
  /**
   * Hands a request of another context over to the host, which answers on `port`; `answerServiceWorker` calls it.
   * Resolves with the host that took it.
   *
   * Errors: RunnerError: why the host did not take it; after `host-lost`, `timeout` and `closed` it may have taken it.
   */
  relay(request: RelayedRequest, port: MessagePort): Promise<RelayedHost>;
  /** Disconnects from the host. Runs go on if the host lives on without this tab. */
  close(): Promise<void>;
}

/** The threads of the host: read, watched, changed and deleted. */
export interface ThreadsApi {
  /** Threads, newest `updatedAt` first. */
  list(query?: ThreadListQuery): Promise<readonly ThreadSummary[]>;
  /**
   * A page of a thread's messages, without attaching: the last ones, or those before a message; empty for an unknown
   * thread. Errors: RunnerError `invalid-input` if the thread does not (or no longer) have the message `before`.
   *
   * @param place `before`: the id of the first message of the page after; `limit`: default 50, at most 500
   */
  messages(threadId: string, place?: Omit<MessagePageQuery, "threadId">): Promise<MessagePage>;
  /** A thread as in the list; undefined for an unknown one. */
  get(threadId: string): Promise<ThreadSummary | undefined>;
  /** Gives it a title of 1 to 200 characters. Errors, as those below: RunnerError `unknown-thread`, `invalid-input`. */
  rename(threadId: string, title: string): Promise<ThreadSummary>;
  /** Removes it from the list, or puts it back. */
  archive(threadId: string, archived?: boolean): Promise<ThreadSummary>;
  /** Protects it from eviction by limits, or no longer. */
  pin(threadId: string, pinned?: boolean): Promise<ThreadSummary>;
  /**
   * Deletes it, stopping a live run first; a no-op for an unknown one. Errors: RunnerError `thread-busy` if the run
   * could not be stopped in time.
   */
  delete(threadId: string): Promise<void>;
  /**
   * Takes up another branch: the path to this run becomes the active one, in all tabs, and on all devices that share the
   * thread. Errors: RunnerError `unknown-thread`; `invalid-input` for a run that the thread does not have; `thread-busy`
   * while a run is live.
   *
   * @param runIndex tells runs of one id apart (answers may have that of the run that asked). Default: the newest one
   */
  activate(threadId: string, runId: string, runIndex?: number): Promise<void>;
  /**
   * Later changes of the list, made in any tab or host: subscribe first, then list. Errors with RunnerError `refused`.
   */
  watch(): Observable<ThreadChange>;
}

/**
 * Connects this tab to the runtime: at once, in the background. Calls wait for the connection.
 *
 * @throws RunnerError `invalid-input` for unknown options
 */
export function connectRuntime(options: ConnectRuntimeOptions): RuntimeConnection {
  checkNames(options, NAMES, { of: "connectRuntime", isRequired: true });
  checkNames(options.hosts, HOSTS, { of: "connectRuntime", within: "hosts", isRequired: true });
  const link = new HostLink(options);
  /** Resolves when the host reports changes of threads, if somebody watches them. */
  let watched: Promise<unknown> = Promise.resolve();
  const changes$ = hostStream<ThreadChange>(
    link,
    (port) => (watched = link.callOnce("watchThreads", port)),
    (next, isAnew) => isAnew && next({ type: "anew" }),
  ).pipe(share());
  const update = (threadId: string, fields: ThreadUpdate): Promise<ThreadSummary> =>
    link.call("updateThread", { threadId, changes: fields });
  return {
    ...(link.user !== undefined && { user: link.user }),
    status$: link.replayed$,
    agent<A extends ClientAgent<A> | undefined>(agentId: string, config: Omit<LocalAgentConfig, "agentId"> = {}) {
      checkNames(config, AGENT, { of: "agent()" });
      checkKind("agentId", agentId, ID);
      const { threadId = randomId() } = config;
      // The class differs from `A` only by name, see `ClientAgent`.
      return new LocalAgent(link, { ...config, agentId, threadId }) as LocalAgent & NonNullable<A>;
    },
    threads: {
      list: async (query = {}) => {
        // Every later change of what is listed is reported.
        await watched.catch(() => undefined);
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
      activate: async (threadId, runId, runIndex) => {
        await link.call("activateRun", { threadId, runId, ...(runIndex !== undefined && { runIndex }) });
      },
      watch: () => changes$,
    },
    encryption: encryptionApi(link),
    toolCalls: toolCallsApi(link),
    offerModel: (name, offer) => offerModel(link, name, offer),
    waiting: waitingApi(link),
    runner: () => new RemoteRunner(link),
    // Loaded when needed: few pages ask by HTTP. The request is read at the call.
    fetch: async (input, init, fetchOptions) => {
      const request = requestOf(input, init);
      return (await loaded(import("./runtime-fetch.js"))).runtimeFetch(link, request, fetchOptions);
    },
    relay: async (request, port) => (await loaded(import("./runtime-fetch.js"))).relay(link, request, port),
    close: () => link.close(),
  };
}

/** The request as the page's `fetch` would read it, but with paths that begin at the origin. */
function requestOf(input: RequestInfo | URL, init?: RequestInit): Request {
  if (input instanceof Request) return new Request(input, init);
  const origin = (globalThis as { location?: Location }).location?.origin;
  // Node and pages of an opaque origin have none that a URL could begin with.
  const base = origin === undefined || origin === "null" ? "http://localhost" : origin;
  return new Request(new URL(input, base), init);
}
