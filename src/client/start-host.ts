import { onAbort } from "../platform/abort.js";
import { systemClock } from "../platform/clock.js";
import { hostLifeLockName, STAND_IN } from "../platform/names.js";
import { freeWithin, type Lives } from "../platform/locks.js";
import { RunnerError } from "../run/errors.js";
import { fromErrorData } from "../wire/errors.js";
import {
  PROTOCOL_VERSION,
  type Hello,
  type HelloFailed,
  type HelloRetiring,
  type HostGone,
  type HostKind,
} from "../wire/shapes.js";

declare global {
  /** https://developer.chrome.com/blog/extended-lifetime-shared-workers (Chromium 148 and later; ignored elsewhere). */
  interface WorkerOptions {
    extendedLifetime?: boolean;
  }
}

/** How to start each kind of host; tried in this order. */
export interface HostFactories {
  /**
   * @param name for the worker's options (`{ type: "module", name }`). A worker with another name is another worker,
   *   for the case that the usual one does not answer. That is called "", or as the user where the tab has one, for
   *   `serveRuntime({ user: self.name })`. A factory without this parameter is only called for the usual one.
   */
  readonly shared?: (name: string) => SharedWorker;
  readonly dedicated?: () => Worker;
  /** A host in the page itself: `async () => (await import("./agents.page.js")).host.connect()`. */
  readonly page?: () => Promise<MessagePort>;
}

/** The tab's end of the raw link, before comlink. */
interface RawLink {
  readonly port: MessagePort | Worker;
  /** Reports that the start failed. */
  readonly failing?: AbstractWorker;
  readonly end: () => void;
}

export interface StartedHost {
  readonly kind: HostKind;
  readonly hello: Hello;
  readonly raw: { postMessage(message: unknown): void };
  /** Resolves when the host says that it has ended the connection: true if somebody has locked its database. */
  readonly gone: Promise<boolean>;
  readonly end: () => void;
}

/**
 * Names of SharedWorkers in the order in which they are tried, the same in each tab. In Firefox a SharedWorker that
 * closes itself while a tab connects sometimes neither ends nor answers until the browser is restarted; and one that is
 * blocked by its agent answers nobody. A worker with another name is one more host.
 */
const NAMES = ["", "host-2", "host-3", "host-4"];
/** Share of the start timeout for a host that answers soon or never: one with another name, or after one that died. */
const SOON = 1 / 3;
/** Index of the name that answered last, by the factories that were used. */
const nameThatAnswered = new WeakMap<HostFactories, number>();
/** How often a retiring host may be restarted. */
const RETIRED_TRIES = 5;
/** A SharedWorker that is just ending accepts connections and never answers: backoff until it is asked again, in ms. */
const ASK_AGAIN_MS = 250;
const ASK_AGAIN_MAX_MS = 2_000;

/**
 * The first host that says hello.
 *
 * @param replaces whether this tab had a host, which died: its files are cached
 * @param user the tab's user
 *
 * Errors: RunnerError `no-host` where none could be started; `protocol-mismatch`; `wrong-user`; what
 * the host says of its storage; the reason of `signal`.
 */
export async function startHost(
  factories: HostFactories,
  timeoutMs: number,
  lives: Lives,
  signal: AbortSignal,
  replaces = false,
  user?: string,
): Promise<StartedHost> {
  const causes: string[] = [];
  /** Host kinds that this browser cannot start. */
  const unfit = new Set<HostKind>();
  for (const { kind, open, answered, share = 1 } of linksOf(factories, replaces, user)) {
    if (unfit.has(kind)) continue;
    const waitMs = timeoutMs * share;
    let until = systemClock.elapsed() + waitMs;
    let patience = kind === "shared-worker" ? ASK_AGAIN_MS : timeoutMs;
    for (let retired = 0; retired < RETIRED_TRIES;) {
      let link: RawLink;
      try {
        link = await open();
      } catch (error) {
        causes.push(`${kind}: ${String(error)}`);
        unfit.add(kind);
        break;
      }
      let answer: Awaited<ReturnType<typeof firstWord>>;
      try {
        const left = until - systemClock.elapsed();
        answer = await firstWord(link, Math.min(patience, left), signal, user);
      } catch (error) {
        link.end();
        throw error;
      }
      if (answer.type === "hello") {
        answered?.();
        return { kind, hello: answer, raw: link.port, gone: goneOf(link), end: link.end };
      }
      link.end();
      if (answer.type === "silent" && kind === "shared-worker" && systemClock.elapsed() < until) {
        patience = Math.min(2 * patience, ASK_AGAIN_MAX_MS);
        continue;
      }
      if (answer.type === "silent") {
        causes.push(`${kind}: said nothing for ${waitMs} ms`);
        break;
      }
      if (answer.type === "unfit") {
        causes.push(`${kind}: ${answer.cause}`);
        unfit.add(kind);
        break;
      }
      retired++;
      const life = hostLifeLockName(answer.dbName, answer.hostId);
      const hasEnded = await freeWithin(lives, life, timeoutMs, systemClock, signal);
      if (signal.aborted) throw signal.reason;
      if (!hasEnded) {
        causes.push(`${kind}: retires, and did not end within ${timeoutMs} ms`);
        break;
      }
      // The next one gets the full time.
      until = systemClock.elapsed() + waitMs;
    }
  }
  throw new RunnerError("no-host", { causes });
}

/** A way to a host. */
interface Way {
  readonly kind: HostKind;
  readonly open: () => RawLink | Promise<RawLink>;
  /** Share of the start timeout. Default 1. */
  readonly share?: number;
  readonly answered?: () => unknown;
}

function* linksOf(factories: HostFactories, replaces: boolean, user?: string): Generator<Way> {
  const { shared, dedicated, page } = factories;
  if (shared !== undefined) {
    const names = shared.length === 0 ? NAMES.slice(0, 1) : NAMES;
    for (const [tries] of names.entries()) {
      const at = ((nameThatAnswered.get(factories) ?? 0) + tries) % names.length;
      yield {
        kind: "shared-worker",
        open: () => {
          const name = names[at]!;
          const worker = shared(user === undefined ? name : user + (name && STAND_IN + name));
          return { port: worker.port, failing: worker, end: () => worker.port.close() };
        },
        share: replaces || tries > 0 ? SOON : 1,
        answered: () => nameThatAnswered.set(factories, at),
      };
    }
  }
  if (dedicated !== undefined) {
    yield {
      kind: "worker",
      open: () => {
        const worker = dedicated();
        return { port: worker, failing: worker, end: () => worker.terminate() };
      },
    };
  }
  if (page !== undefined) {
    yield {
      kind: "page",
      open: async () => {
        const port = await page();
        return { port, end: () => port.close() };
      },
    };
  }
}

type FirstWord =
  | Hello
  | HelloRetiring
  | { readonly type: "silent" }
  /** It cannot be started in this browser. */
  | { readonly type: "unfit"; readonly cause: string };

async function firstWord(
  link: RawLink,
  timeoutMs: number,
  signal: AbortSignal,
  user: string | undefined,
): Promise<FirstWord> {
  const listening = new AbortController();
  const options = { signal: listening.signal };
  const heard = new Promise<FirstWord | HelloFailed>((resolve) => {
    link.port.addEventListener(
      "message",
      (event) => {
        const word = wordOf((event as MessageEvent<unknown>).data);
        if (word !== undefined) resolve(word);
      },
      options,
    );
    link.failing?.addEventListener(
      "error",
      (event) =>
        resolve({ type: "unfit", cause: (event as Partial<ErrorEvent>).message || "its script failed to load" }),
      options,
    );
    onAbort(signal, () => resolve({ type: "silent" }), listening.signal);
    void systemClock.after(timeoutMs, listening.signal).then(() => resolve({ type: "silent" }));
  });
  if (link.port instanceof MessagePort) link.port.start();
  const word = await heard;
  listening.abort();
  if (signal.aborted) throw signal.reason;
  if (word.type === "failed") throw fromErrorData(word.error);
  if (word.type === "hello" && word.protocol !== PROTOCOL_VERSION) {
    throw new RunnerError("protocol-mismatch", { host: word.protocol, tab: PROTOCOL_VERSION });
  }
  if (word.type === "hello" && word.user !== user) {
    const message = "The host is of another user: give each user a worker, new SharedWorker(url, { name: user })";
    throw new RunnerError("wrong-user", {}, { message });
  }
  return word;
}

/** Resolves when the host ends the connection. The listener goes with the link. */
const goneOf = ({ port }: RawLink): Promise<boolean> =>
  new Promise((resolve) =>
    port.addEventListener("message", (event) => {
      const said = (event as MessageEvent<unknown>).data as Partial<HostGone> | null;
      if (said?.type === "gone") resolve(said.locked === true);
    }),
  );

function wordOf(data: unknown): Hello | HelloFailed | HelloRetiring | undefined {
  const word = data as Partial<Hello | HelloFailed | HelloRetiring> | null;
  switch (word?.type) {
    case "hello":
      return typeof word.hostId === "string" && word.port instanceof MessagePort ? (word as Hello) : undefined;
    case "failed":
      return typeof word.error === "object" ? (word as HelloFailed) : undefined;
    case "retiring":
      return typeof word.hostId === "string" && typeof word.dbName === "string" ? (word as HelloRetiring) : undefined;
    default:
      return undefined;
  }
}
