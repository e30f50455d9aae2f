import { abortWith } from "../platform/abort.js";
import { systemClock } from "../platform/clock.js";
import type { Lives } from "../platform/locks.js";
import { hostLifeLockName, RELAY_MESSAGE } from "../platform/names.js";
import { RunnerError } from "../run/errors.js";
import { fromErrorData } from "../wire/errors.js";
import { relayResponse } from "../wire/relay-response.js";
import type { RelayedHost, RelayedRequest } from "../wire/relayed-request.js";
import {
  pageWordOf,
  RELAY_PROTOCOL,
  type PageWord,
  type RelayMessage,
  type RelayOrder,
} from "../wire/service-worker-words.js";
import type { RelayClient } from "./scope.js";

/** How long a page may take to pass a request to its host, in ms; longer than its connection waits for a host. */
const HAND_OVER_MS = 60_000;

/** Codes after which the page's host may have the request. */
const MAYBE_TAKEN: ReadonlySet<string> = new Set(["host-lost", "timeout", "closed"]);

/** The result of asking one page. */
export type Asked =
  /** `ended` resolves when the body is complete or was cut off. */
  | { readonly is: "answered"; readonly response: Response; readonly ended: Promise<void> }
  /** The page has no runtime, no host, or another user: the request was not delivered. */
  | { readonly is: "passed" }
  /** The page's host is gone; it may have received the request. */
  | { readonly is: "lost"; readonly error: RunnerError };

export interface AskOptions {
  /** Timeout of the page's first answer, then interval of the checks that it still exists, in ms. */
  readonly timeoutMs: number;
  readonly lives: Lives;
  /** Whether a page of this user may be given the request. */
  readonly accepts: (user: string | undefined) => boolean;
  /** Whether the page still exists. */
  readonly isThere: (clientId: string) => Promise<boolean>;
  /** Aborts when the answer is no longer wanted. */
  readonly signal: AbortSignal;
}

/**
 * Sends a request to a page's host through the page. Settles even if page or host dies (L13).
 *
 * Errors: the reason of `signal`; a RunnerError with the reason why the host has no answer.
 */
export async function askClient(
  client: RelayClient,
  request: RelayedRequest,
  { timeoutMs, lives, accepts, isThere, signal }: AskOptions,
): Promise<Asked> {
  const ending = abortWith(signal);
  const answers = new MessageChannel();
  const words = new MessageChannel();
  let heard = false;
  let host: RelayedHost | undefined;
  const watch = (told: RelayedHost): void => {
    if (host !== undefined) return;
    host = told;
    void lives
      .whenFree(hostLifeLockName(told.dbName, told.hostId), ending.signal)
      .then((died) => died && ending.abort(new RunnerError("host-lost")));
  };
  let end!: () => void;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const response = relayResponse(answers.port1, ending.signal, {
    onHead: watch,
    onSettled: () => {
      ending.abort();
      end();
    },
  });
  /** Whether the page closed or froze before it delivered the request. */
  const isLeftAlone = async (): Promise<boolean> => {
    const until = systemClock.elapsed() + HAND_OVER_MS;
    while (systemClock.elapsed() < until) {
      await systemClock.after(timeoutMs, ending.signal);
      if (host !== undefined || ending.signal.aborted) return false;
      if (!(await isThere(client.id))) return host === undefined;
    }
    return true;
  };
  /** The result if no answer comes, derived from the page's replies or its silence. */
  const failing = new Promise<Asked>((resolve) => {
    const hear = (word: PageWord): void => {
      if (word.type === "taken") watch(word);
      if (word.type === "refused") {
        const error = fromErrorData(word.error);
        resolve(MAYBE_TAKEN.has(error.code) ? { is: "lost", error } : { is: "passed" });
      }
      if (word.type !== "heard" || heard) return;
      heard = true;
      const { user } = word;
      if (!accepts(user)) return resolve({ is: "passed" });
      const order: RelayOrder = { request, port: answers.port2, ...(user !== undefined && { user }) };
      words.port1.postMessage(order, [answers.port2]);
      void isLeftAlone().then((left) => left && resolve({ is: "lost", error: new RunnerError("host-lost") }));
    };
    words.port1.onmessage = ({ data }: MessageEvent<unknown>) => {
      const word = pageWordOf(data);
      if (word !== undefined) hear(word);
    };
    void systemClock.after(timeoutMs, ending.signal).then(() => heard || resolve({ is: "passed" }));
  });
  try {
    client.postMessage({ type: RELAY_MESSAGE, v: RELAY_PROTOCOL, words: words.port2 } satisfies RelayMessage, [
      words.port2,
    ]);
    const answered = response.then((given): Asked => ({ is: "answered", response: given, ended }));
    const asked = await Promise.race([answered, failing]);
    if (asked.is !== "answered") ending.abort();
    return asked;
  } catch (error) {
    ending.abort();
    if (!signal.aborted && RunnerError.is(error, "host-lost")) return { is: "lost", error };
    throw error;
  } finally {
    words.port1.onmessage = null;
    words.port1.close();
  }
}
