import { defaultLocks } from "../platform/locks.js";
import { RunnerError } from "../run/errors.js";
import { IndexedDBAgentRunner, type IndexedDBAgentRunnerOptions } from "../runner/indexeddb-agent-runner.js";
import { toErrorData } from "../wire/errors.js";
import {
  PROTOCOL_VERSION,
  type Hello,
  type HelloFailed,
  type HelloRetiring,
  type HostKind,
  type WatchFrame,
} from "../wire/shapes.js";
import { AgentRegistry, type AgentSource } from "./agents.js";
import { editedSince } from "./edited.js";
import { connectTab, type RawPort } from "./tab-connection.js";

export interface ServeRuntimeOptions extends Pick<
  IndexedDBAgentRunnerOptions,
  "dbName" | "stopGraceMs" | "maxRunMs" | "limits" | "openTimeoutMs"
> {
  /** The agents, by the id that tabs name them by. Each run gets a clone. */
  readonly agents: Readonly<Record<string, AgentSource>>;
}

/** The host that {@link serveRuntime} made. */
export interface RuntimeHost {
  readonly kind: HostKind;
  /** A link for a tab in this same page: what `hosts.page` of `connectRuntime` returns. */
  connect(): MessagePort;
  /** Settles the live runs as stopped and lets go of everything. */
  close(): Promise<void>;
}

interface HostScope {
  readonly kind: HostKind;
  readonly listen: (accept: (port: RawPort) => void) => void;
}

/** The context that this runs in, as a host. */
function hostScope(): HostScope {
  const scope = globalThis as unknown as {
    SharedWorkerGlobalScope?: new () => object;
    DedicatedWorkerGlobalScope?: new () => object;
  };
  const isA = (type: (new () => object) | undefined): boolean => type !== undefined && globalThis instanceof type;
  if (isA(scope.SharedWorkerGlobalScope)) {
    return {
      kind: "shared-worker",
      listen: (accept) =>
        globalThis.addEventListener("connect", (event) => {
          const [port] = (event as MessageEvent).ports;
          if (port === undefined) return;
          accept(port);
          port.start();
        }),
    };
  }
  if (isA(scope.DedicatedWorkerGlobalScope)) {
    return { kind: "worker", listen: (accept) => accept(globalThis as unknown as RawPort) };
  }
  return { kind: "page", listen: () => undefined };
}

/**
 * Makes this context the host of the agents: call it once, at the top of a worker file, without awaiting anything
 * before it. Works in a SharedWorker, in a dedicated Worker and in a page.
 *
 * @throws RunnerError `agent-not-cloneable` for an agent whose clone cannot run
 */
export function serveRuntime(options: ServeRuntimeOptions): RuntimeHost {
  const { kind, listen } = hostScope();
  const agents = new AgentRegistry(options.agents);
  const bootId = crypto.getRandomValues(new Uint32Array(2)).join("-");
  const locks = defaultLocks();
  let runner: IndexedDBAgentRunner | undefined;
  let refusal: unknown;
  try {
    runner = new IndexedDBAgentRunner(options);
  } catch (error) {
    // Told to each tab that connects: a worker has no other way to be heard.
    refusal = error;
  }

  const closers = new Set<() => void>();
  const watchers = new Set<(frame: WatchFrame) => void>();
  let tabs = 0;
  const status = (): WatchFrame => ({ type: "status", tabs, durability: "durable" });
  const countTabs = (change: 1 | -1): void => {
    tabs += change;
    for (const send of watchers) send(status());
  };

  const accept = async (raw: RawPort): Promise<void> => {
    try {
      if (runner === undefined || locks === undefined) throw refusal ?? new RunnerError("insecure-context");
      if (await editedSince()) return await retire(raw, runner);
      await runner.opened;
      let counted = false;
      const { port, close } = connectTab(
        raw,
        {
          runner,
          agents,
          locks,
          watch: (send) => {
            watchers.add(send);
            send(status());
            const changes = runner.watchThreads().subscribe((change) => send({ type: "threads", change }));
            return () => {
              watchers.delete(send);
              changes.unsubscribe();
            };
          },
        },
        () => {
          counted = true;
          countTabs(1);
        },
        () => {
          closers.delete(close);
          if (counted) countTabs(-1);
        },
      );
      closers.add(close);
      const hello: Hello = {
        type: "hello",
        protocol: PROTOCOL_VERSION,
        hostId: runner.hostId,
        bootId,
        dbName: runner.dbName,
        kind,
        agents: agents.ids,
        port,
      };
      raw.postMessage(hello, [port]);
    } catch (error) {
      const failed: HelloFailed = { type: "failed", protocol: PROTOCOL_VERSION, error: toErrorData(error) };
      raw.postMessage(failed, []);
    }
  };

  const close = async (): Promise<void> => {
    for (const end of closers) end();
    await runner?.close();
  };

  /**
   * The worker's files were edited: this host ends, and the tab that asks starts the new one. Its life lock falls with
   * the context, so who waits for it meets no half-closed host.
   */
  const retire = async (raw: RawPort, host: IndexedDBAgentRunner): Promise<void> => {
    raw.postMessage({ type: "retiring", hostId: host.hostId, dbName: host.dbName } satisfies HelloRetiring, []);
    await host.settleAll();
    globalThis.close();
  };

  listen((port) => void accept(port));
  return {
    kind,
    connect() {
      const { port1, port2 } = new MessageChannel();
      void accept(port1);
      port1.start();
      return port2;
    },
    close,
  };
}
