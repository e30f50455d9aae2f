import { Observable } from "rxjs";
import { randomId } from "../platform/ids.js";
import { RunnerError } from "../run/errors.js";
import type { RuntimeStatus, ThreadChange, ThreadListQuery, ThreadSummary } from "../wire/shapes.js";
import { HostLink } from "./host-link.js";
import { LocalAgent } from "./local-agent.js";
import type { HostFactories } from "./start-host.js";

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
}

/** A tab's connection to the runtime. */
export interface RuntimeConnection {
  /** How this tab stands with its host; replays the latest, never errors. */
  readonly status$: Observable<RuntimeStatus>;
  /**
   * An agent of the host.
   *
   * @param options `threadId`: default a fresh one. Other fields as AbstractAgent takes them.
   * @throws RunnerError `invalid-input` for an empty id. Whether the host has the agent shows at its first run.
   */
  agent(agentId: string, options?: Omit<ConstructorParameters<typeof LocalAgent>[1], "agentId">): LocalAgent;
  readonly threads: ThreadsApi;
  /** Lets go of the host. Runs go on where the host lives on without this tab. */
  close(): Promise<void>;
}

export interface ThreadsApi {
  /** Threads, newest `updatedAt` first. */
  list(query?: ThreadListQuery): Promise<readonly ThreadSummary[]>;
  /** Changes of the list, in whichever tab or host; begins with the next one: subscribe, then list. */
  watch(): Observable<ThreadChange>;
}

/**
 * Connects this tab to the runtime: at once, in the background. Calls wait for the connection.
 */
export function connectRuntime(options: ConnectRuntimeOptions): RuntimeConnection {
  const link = new HostLink({
    hosts: options.hosts,
    startTimeoutMs: options.startTimeoutMs ?? 15_000,
    callTimeoutMs: options.callTimeoutMs ?? 15_000,
    extendedLifetime: options.extendedLifetime ?? true,
  });
  return {
    status$: link.status$.asObservable(),
    agent(agentId, config = {}) {
      const threadId = config.threadId ?? randomId();
      for (const [field, id] of Object.entries({ agentId, threadId })) {
        if (typeof id === "string" && id !== "") continue;
        throw new RunnerError("invalid-input", { field }, { message: `${field} must be a string that is not empty` });
      }
      return new LocalAgent(link, { ...config, agentId, threadId });
    },
    threads: {
      list: (query = {}) => link.call(({ api }) => api.listThreads(query)),
      watch: () => link.changes$.asObservable(),
    },
    close: () => link.close(),
  };
}
