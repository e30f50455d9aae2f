import { systemClock } from "../platform/clock.js";
import { hostLifeLockName } from "../platform/names.js";
import type { Locks } from "../platform/locks.js";
import { RunnerError } from "../run/errors.js";
import { fromErrorData } from "../wire/errors.js";
import { PROTOCOL_VERSION, type Hello, type HelloFailed, type HelloRetiring, type HostKind } from "../wire/shapes.js";

declare global {
  /** https://developer.chrome.com/blog/extended-lifetime-shared-workers (Chromium 148 and later; ignored elsewhere). */
  interface WorkerOptions {
    extendedLifetime?: boolean;
  }
}

/** How to start each kind of host; tried in this order. */
export interface HostFactories {
  readonly shared?: () => SharedWorker;
  readonly dedicated?: () => Worker;
  /** A host in the page itself: `async () => (await import("./agents.page.js")).host.connect()`. */
  readonly page?: () => Promise<MessagePort>;
}

/** The tab's end of the raw link, before comlink. */
interface RawLink {
  readonly port: MessagePort | Worker;
  /** Where the start's failure is told. */
  readonly failing?: AbstractWorker;
  readonly end: () => void;
}

export interface StartedHost {
  readonly kind: HostKind;
  readonly hello: Hello;
  readonly raw: { postMessage(message: unknown): void };
  readonly end: () => void;
}

/** How often a host that retires may be started anew. */
const RETIRED_TRIES = 5;
/** A SharedWorker that is just ending takes connections and never answers: it is asked again, in ms. */
const ASK_AGAIN_MS = 2_000;

/**
 * The first host that says hello.
 *
 * Errors: RunnerError `no-host` where none could be started; `protocol-mismatch`; what the host says of its storage;
 * the reason of `signal`.
 */
export async function startHost(
  factories: HostFactories,
  timeoutMs: number,
  locks: Locks,
  signal: AbortSignal,
): Promise<StartedHost> {
  const causes: string[] = [];
  for (const [kind, open] of linksOf(factories)) {
    const until = systemClock.elapsed() + timeoutMs;
    for (let retired = 0; retired < RETIRED_TRIES;) {
      let link: RawLink;
      try {
        link = await open();
      } catch (error) {
        causes.push(`${kind}: ${String(error)}`);
        break;
      }
      let answer: Awaited<ReturnType<typeof firstWord>>;
      try {
        const left = until - systemClock.elapsed();
        answer = await firstWord(link, kind === "shared-worker" ? Math.min(ASK_AGAIN_MS, left) : left, signal);
      } catch (error) {
        link.end();
        throw error;
      }
      if (answer.type === "hello") return { kind, hello: answer, raw: link.port, end: link.end };
      link.end();
      if (answer.type === "silent" && kind === "shared-worker" && systemClock.elapsed() < until) continue;
      if (answer.type === "silent") {
        causes.push(`${kind}: said nothing for ${timeoutMs} ms`);
        break;
      }
      if (answer.type === "unfit") {
        causes.push(`${kind}: ${answer.cause}`);
        break;
      }
      retired++;
      await locks.whenFree(hostLifeLockName(answer.dbName, answer.hostId), signal);
    }
  }
  throw new RunnerError("no-host", { causes });
}

function* linksOf({ shared, dedicated, page }: HostFactories): Generator<[HostKind, () => RawLink | Promise<RawLink>]> {
  if (shared !== undefined) {
    yield [
      "shared-worker",
      () => {
        const worker = shared();
        return { port: worker.port, failing: worker, end: () => worker.port.close() };
      },
    ];
  }
  if (dedicated !== undefined) {
    yield [
      "worker",
      () => {
        const worker = dedicated();
        return { port: worker, failing: worker, end: () => worker.terminate() };
      },
    ];
  }
  if (page !== undefined) {
    yield [
      "page",
      async () => {
        const port = await page();
        return { port, end: () => port.close() };
      },
    ];
  }
}

type FirstWord =
  | Hello
  | HelloRetiring
  | { readonly type: "silent" }
  /** It cannot be started here. */
  | { readonly type: "unfit"; readonly cause: string };

async function firstWord(link: RawLink, timeoutMs: number, signal: AbortSignal): Promise<FirstWord> {
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
    signal.addEventListener("abort", () => resolve({ type: "silent" }), options);
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
  return word;
}

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
