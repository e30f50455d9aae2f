import { defined } from "../platform/defined.js";
import { onAbort, sharedController } from "../platform/abort.js";
import { systemClock } from "../platform/clock.js";
import { isDenied } from "../platform/denied.js";
import { ownLives } from "../platform/context-locks.js";
import { defaultLocks, type HeldLock } from "../platform/locks.js";
import { hostLifeLockName } from "../platform/names.js";
import { loggable } from "../platform/log.js";
import { onPageCache } from "../platform/page-cache.js";
import { RunnerError } from "../run/errors.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import { loaded } from "../run/loaded.js";
import type { KeyForm } from "../run/types.js";
import { toErrorData } from "../wire/errors.js";
import {
  PROTOCOL_VERSION,
  type Hello,
  type HelloFailed,
  type HelloRetiring,
  type HostKind,
  type RunnerErrorData,
  type StatusFrame,
  type SyncState,
} from "../wire/shapes.js";
import { AgentRuntime, coreOf } from "../runtime/agent-runtime.js";
import type { RuntimeCore } from "../runtime/core.js";
import type { AgentRuntimeOptions } from "../runtime/options.js";
import { editedSince } from "./edited.js";
import { serveOnce, type Server } from "./one-run.js";
import { connectTab, type RawPort } from "./tab-connection.js";

/** Options of a host: those of its runtime. */
export type ServeRuntimeOptions = AgentRuntimeOptions;

/** The host that {@link serveRuntime} made. */
export interface RuntimeHost {
  readonly kind: HostKind;
  /** A link for a tab in this page: what `hosts.page` of `connectRuntime` returns. */
  connect(): MessagePort;
  /** Settles the live runs as stopped and releases everything. */
  close(): Promise<void>;
}

interface HostScope {
  readonly kind: HostKind;
  readonly listen: (accept: (port: RawPort) => void) => void;
}

/** How long a host whose database was taken over still delivers the ends of its runs, in ms. */
const GOODBYE_MS = 250;

/** Changes of the number of attachments within this time are reported as one, in ms. */
const ATTACHMENTS_TOLD_AFTER_MS = 50;

/** Backoff between looks at a lock whose state cannot be told: first and longest wait, in ms. */
const LOOK_MS = 1_000;
const LOOK_MAX_MS = 15_000;

/** Where locks are denied, tabs do not watch them either. */
function whereDenied(error: unknown): undefined {
  if (!isDenied(error)) throw error;
}

/** How this context is a host. */
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
          if (port !== undefined) accept(port);
        }),
    };
  }
  if (isA(scope.DedicatedWorkerGlobalScope)) {
    return { kind: "worker", listen: (accept) => accept(globalThis as unknown as RawPort) };
  }
  return { kind: "page", listen: () => undefined };
}

/** Told to each tab that connects, because a worker has no other way. */
function refuse(raw: RawPort, error: unknown): void {
  const failed: HelloFailed = { type: "failed", protocol: PROTOCOL_VERSION, error: toErrorData(error) };
  raw.postMessage(failed, []);
}

async function formOfKeys({ isEncrypted }: RuntimeCore): Promise<KeyForm> {
  if (!isEncrypted) return "nothing";
  const { canSendKeys } = await loaded(import("../storage/encryption/keys.js"));
  return (await canSendKeys()) ? "keys" : "bytes";
}

/** What a worker cannot make is told to its tabs. */
function coreFor(given: ServeRuntimeOptions | AgentRuntime, { kind, listen }: HostScope): RuntimeCore {
  try {
    return coreOf(given instanceof AgentRuntime ? given : new AgentRuntime(given));
  } catch (error) {
    // A script that throws leaves its worker alive, and only the first tab may be told of it.
    if (kind !== "page")
      serveOnce(listen, () => ({ accept: (raw) => refuse(raw, error), close: async () => undefined }));
    throw error;
  }
}

/**
 * Makes this context the host of the agents: call it once, at the top of a worker file, without awaiting anything
 * before it. Works in a SharedWorker, in a dedicated Worker and in a page.
 *
 * @param given options, or a runtime that was made with them
 * @throws RunnerError `agent-not-cloneable` for an agent whose clone cannot run; `invalid-input`
 */
export function serveRuntime(given: ServeRuntimeOptions | AgentRuntime): RuntimeHost {
  const scope = hostScope();
  const core = coreFor(given, scope);
  const { kind, listen } = scope;
  const serve = (): Server => hostOf(core, kind);
  const { accept, close } = kind === "page" ? serve() : serveOnce(listen, serve);
  return {
    kind,
    connect() {
      const { port1, port2 } = new MessageChannel();
      accept(port1);
      return port2;
    },
    close,
  };
}

function hostOf(core: RuntimeCore, kind: HostKind): Server {
  const webLocks = defaultLocks();
  const lives = ownLives();
  const { home } = core;
  // A middleware decides who may know them.
  const agentIds = core.options.beforeRequestMiddleware === undefined ? core.agents.ids : undefined;

  /** The tab of each connection, once it has named itself, by how to end the connection. */
  const connections = new Map<(locked?: boolean) => void, string | undefined>();
  /** Aborts when the connections end. */
  let connected = sharedController();
  const watchers = new Set<(frame: StatusFrame) => void>();
  let attachments = 0;
  /** Set once the database was deleted. */
  let deleted: RunnerErrorData | undefined;
  /** Of an encrypted database. */
  let lock: Pick<StatusFrame, "encryption" | "error"> = {};
  let sync: SyncState | undefined;
  const status = (): StatusFrame => ({
    tabs: [...connections.values()].filter((tabId) => tabId !== undefined).length,
    attachments,
    durability: home.local?.durability ?? "durable",
    ...lock,
    ...defined({ sync, error: deleted }),
  });
  const tellStatus = (): void => {
    const frame = status();
    for (const send of watchers) send(frame);
  };
  core.sync$.subscribe((state) => {
    sync = state;
    tellStatus();
  });
  let telling: Promise<void> | undefined;
  const countAttachments = (change: 1 | -1): void => {
    attachments += change;
    // A loading page attaches many at once.
    telling ??= systemClock.after(ATTACHMENTS_TOLD_AFTER_MS).then(() => {
      telling = undefined;
      tellStatus();
    });
  };

  /**
   * By runner, the life lock that tabs see where the runner's own is one that they do not: that of a runner in memory.
   */
  const shownLives = new Map<LocalAgentRunner, Promise<HeldLock | undefined>>();
  const showLife = async (runner: LocalAgentRunner): Promise<void> => {
    const name = hostLifeLockName(runner.dbName, runner.hostId);
    // Refused if the runner itself holds it. Without Web Locks both may hold it.
    const show = async (): Promise<HeldLock | undefined> =>
      webLocks === undefined ? lives.hold(name) : webLocks.tryHold(name);
    const shown = shownLives.get(runner) ?? show().catch(whereDenied);
    shownLives.set(runner, shown);
    await shown;
  };
  const hideLives = (): void => {
    for (const shown of shownLives.values()) void shown.then((held) => held?.release());
    shownLives.clear();
  };

  /** Runners whose lock is looked at again. */
  const lookingAgain = new WeakSet<LocalAgentRunner>();
  /** Without the key a tab asks for it first. */
  const lookAtLock = async (runner: LocalAgentRunner, againMs = LOOK_MS): Promise<void> => {
    const before = lock;
    try {
      const encryption = await runner.lockState();
      lock = encryption === undefined ? {} : { encryption };
    } catch (error) {
      lock = { encryption: "locked", error: toErrorData(error) };
      if (!RunnerError.is(error, "wrong-key")) lookAgain(runner, againMs, error);
    }
    if (lock.encryption !== before.encryption || lock.error?.code !== before.error?.code) tellStatus();
  };
  /** The function that gives the key has failed, or the storage. */
  const lookAgain = (runner: LocalAgentRunner, afterMs: number, error: unknown): void => {
    if (lookingAgain.has(runner) || runner.closedSignal.aborted) return;
    lookingAgain.add(runner);
    core.warnOnce("[ag-ui-local-runtime] The database cannot be read now", loggable(error));
    void systemClock.after(afterMs, runner.closedSignal).then(() => {
      lookingAgain.delete(runner);
      if (home.local === runner) void lookAtLock(runner, Math.min(2 * afterMs, LOOK_MAX_MS));
    });
  };

  const accept = async (raw: RawPort): Promise<void> => {
    try {
      if (await editedSince()) return await retire(raw);
      const runner = await home.openLocal();
      giveWay(runner);
      const looked = lookAtLock(runner);
      if (core.isEncrypted) await looked;
      const keyForm = await formOfKeys(core);
      await showLife(runner);
      // Somebody has locked or unlocked its database, or the page was suspended.
      if (home.local !== runner) return await accept(raw);
      const { port, close } = connectTab(
        raw,
        {
          core,
          runner,
          lives,
          hostEnds: connected.signal,
          attached: () => {
            countAttachments(1);
            return () => countAttachments(-1);
          },
          watch: (send) => {
            watchers.add(send);
            send(status());
            return () => watchers.delete(send);
          },
        },
        (id) => {
          // The tab had taken this host for dead, and no longer hears its old connection.
          for (const [end, tabId] of connections) if (tabId === id) end();
          connections.set(close, id);
          tellStatus();
        },
        () => {
          const wasCounted = connections.get(close) !== undefined;
          connections.delete(close);
          if (wasCounted) tellStatus();
        },
      );
      connections.set(close, undefined);
      const hello: Hello = {
        type: "hello",
        protocol: PROTOCOL_VERSION,
        hostId: runner.hostId,
        dbName: runner.dbName,
        kind,
        ...defined({ user: runner.user, agents: agentIds }),
        exclusion: webLocks === undefined ? "fence" : "locks",
        ...(keyForm !== "keys" && { keyForm }),
        port,
      };
      raw.postMessage(hello, [port]);
    } catch (error) {
      refuse(raw, error);
    }
  };

  const endConnections = (locked = false): void => {
    for (const end of connections.keys()) end(locked);
    connected.abort();
    connected = sharedController();
  };

  const close = async (): Promise<void> => {
    endConnections();
    await core.close();
    hideLives();
    await lives.close();
  };

  /** A newer build took the database over; live runs are settled. The worker ends, so that tabs start the newer one. */
  const outdated = async (): Promise<void> => {
    // Frames and the goodbye come on different ports, in no common order: tabs that keep up get their frames first.
    await systemClock.after(GOODBYE_MS);
    endConnections();
    await home.local?.close();
    hideLives();
    if (kind !== "page") globalThis.close();
  };
  const watched = new WeakSet<LocalAgentRunner>();
  const giveWay = (runner: LocalAgentRunner): void => {
    if (watched.has(runner)) return;
    watched.add(runner);
    onAbort(runner.outdated, () => void outdated());
    runner.deleted$.subscribe((error) => {
      deleted = toErrorData(error);
      tellStatus();
    });
  };

  /**
   * The worker's files were edited: this host ends, and the asking tab starts the new one. Its life lock falls with the
   * context, so nobody who waits for it meets a half-closed host.
   */
  const retire = async (raw: RawPort): Promise<void> => {
    try {
      const runner = await home.openLocal();
      const { hostId, dbName } = runner;
      raw.postMessage({ type: "retiring", hostId, dbName } satisfies HelloRetiring, []);
      await runner.settleAll();
    } finally {
      globalThis.close();
    }
  };

  if (core.isEncrypted) {
    core.lockChanged = (forAll, isAnew) => {
      endConnections(forAll);
      if (isAnew) hideLives();
    };
    // From now on it hears other hosts. The tab that wants to change it is told why the code for it does not load.
    core.locking().catch(() => undefined);
  }
  if (kind === "page") {
    // After `pageshow` tabs connect to a new host; no run goes on.
    onPageCache({
      enter: () => {
        endConnections();
        home.letGo();
        hideLives();
      },
    });
  }
  return {
    accept: (port) => {
      void accept(port);
      port.start?.();
    },
    close,
  };
}
