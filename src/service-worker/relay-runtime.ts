import { livesWhereAllowed } from "../platform/denied.js";
import { randomId } from "../platform/ids.js";
import { defaultLocks, type Lives } from "../platform/locks.js";
import { serviceWorkerLifeLockName } from "../platform/names.js";
import { RunnerError } from "../run/errors.js";
import { checkNames, type Names } from "../run/options.js";
import { checkBelowRoot, isBelow } from "../wire/base-path.js";
import { errorResponse } from "../wire/error-response.js";
import { refusalOf, toRelayed, triesOf, type RelayedRequest } from "../wire/relayed-request.js";
import { askClient, type AskOptions, type Asked } from "./ask-client.js";
import type { RelayClient, RelayFetchEvent, RelayScope } from "./scope.js";

/** Options of {@link relayRuntime}. */
export interface RelayRuntimeOptions {
  /** The runtime answers requests of this origin to this path and below it: "/api/agents". Never "/". */
  readonly basePath: string;
  /** How long a page may take to reply before the next one is asked, in ms. Default 2,000. */
  readonly timeoutMs?: number;
}

const NAMES: Names<RelayRuntimeOptions> = {
  basePath: true,
  timeoutMs: [(given) => typeof given === "number" && given > 0, "a number above 0"],
};

const NO_HOST =
  "No open page of this site has a runtime for this request: open one that calls connectRuntime(), for the same user, and answerServiceWorker(), and try again";
const SEVERAL_USERS = "Pages of several users are open, and nobody knows whose this request is: send it from a page";

/**
 * Makes a service worker answer requests below `basePath` with the runtime of an open page that calls
 * `answerServiceWorker`; the requesting page is tried first, others only if they are of the same user. Whoever names no
 * user is of none; a navigation is of the user of all pages that answer, if that is one. Runs are hosted there, never in
 * the service worker. Other requests are not affected. Call it at the top of the service worker's script, before any
 * `await`.
 *
 * Its own responses, `{ error, message }`: 503 if no page of the user has a host (`no-host`), or for a navigation while
 * pages of several users are open (`wrong-user`), 502 if the host died before it answered (only GET and HEAD are
 * retried), 500 if it failed, 413 for a body of more than 32 MB, 403 for the post of a form. If the host dies later, the
 * body ends with an error.
 *
 * Browsers tell a service worker late that the requester left: Chromium once the answer has begun, Firefox with the next
 * bytes. Firefox also delivers an answer only with its first bytes. They end a service worker after about five minutes
 * of one request, and a longer stream with it: https://github.com/w3c/ServiceWorker/issues/1182. A page's own
 * `runtime.fetch`, or `installRuntimeFetch`, has neither delay nor limit; others connect again, with `Last-Event-ID`.
 *
 * @returns a function that stops the relay
 * @throws RunnerError `invalid-input` for an invalid base path, or "/"
 */
export function relayRuntime(
  options: RelayRuntimeOptions,
  // The compiler knows only the globals of a page.
  scope: RelayScope = globalThis as unknown as RelayScope,
): () => void {
  checkNames(options, NAMES, { of: "relayRuntime", isRequired: true });
  const { basePath, timeoutMs = 2_000 } = options;
  const path = checkBelowRoot(basePath);
  const relay = new Relay(scope, path, timeoutMs);
  const listen = (event: RelayFetchEvent): void => {
    if (!isBelow(new URL(event.request.url), path, scope.location.origin)) return;
    let settle!: () => void;
    // Firefox ends a service worker without a pending `waitUntil`, even in the middle of a body.
    event.waitUntil(new Promise<void>((resolve) => (settle = resolve)));
    event.respondWith(relay.answer(event, settle));
  };
  scope.addEventListener("fetch", listen);
  return () => scope.removeEventListener("fetch", listen);
}

/** The users that a request can be of: one in the end, which is undefined where there is none. */
type Users = Set<string | undefined>;

class Relay {
  private readonly lives: Lives;
  private life: Promise<string> | undefined;

  constructor(
    private readonly scope: RelayScope,
    private readonly basePath: string,
    private readonly timeoutMs: number,
  ) {
    // Service workers exist only in secure contexts, which have Web Locks.
    this.lives = livesWhereAllowed(defaultLocks()!);
  }

  /** @param settle called when the answer is over */
  async answer({ request, clientId }: RelayFetchEvent, settle: () => void): Promise<Response> {
    let ended: Promise<void> | undefined;
    try {
      // The post of a form does not tell its origin, so any site can send one. Front ends never do.
      if (request.mode === "navigate" && request.method !== "GET") return errorResponse(403, "Forbidden");
      const relayed = await toRelayed(request, this.basePath);
      const serviceWorkerId = await this.alive();
      // Chromium names the page that is left: it may know of no user, and be gone at any moment.
      const asking = request.mode === "navigate" ? "" : clientId;
      const asked = await this.ask({ ...relayed, serviceWorkerId, clientId }, asking, request.signal);
      if (asked.is !== "answered") return errorResponse(503, "no-host", NO_HOST);
      ({ ended } = asked);
      return asked.response;
    } catch (error) {
      if (request.signal.aborted) throw error;
      const refusal = refusalOf(error);
      if (refusal !== undefined) return refusal;
      if (!RunnerError.is(error)) throw error;
      const status = error.code === "host-failed" ? 500 : error.code === "wrong-user" ? 503 : 502;
      return errorResponse(status, error.code, error.message);
    } finally {
      void Promise.resolve(ended).then(settle);
    }
  }

  /** Asks until there is an answer, or no page is left to ask. Errors: RunnerError; the reason of `signal`. */
  private async ask(
    relayed: RelayedRequest,
    clientId: string,
    signal: AbortSignal,
  ): Promise<Exclude<Asked, { readonly is: "lost" }>> {
    const users: Users = new Set();
    for (let left = triesOf(relayed.method) - 1; ; left--) {
      const asked = await this.askAll(relayed, clientId, signal, users);
      if (asked.is !== "lost") return asked;
      if (left === 0) throw asked.error;
    }
  }

  /**
   * Asks one page after the other until one accepts the request.
   *
   * @param users whose request it is, once that is known
   */
  private async askAll(relayed: RelayedRequest, clientId: string, signal: AbortSignal, users: Users): Promise<Asked> {
    const { timeoutMs, lives } = this;
    const isThere = async (id: string): Promise<boolean> => (await this.scope.clients.get(id)) !== undefined;
    const askOne = (client: RelayClient, accepts: AskOptions["accepts"]): Promise<Asked> =>
      askClient(client, relayed, { timeoutMs, lives, accepts, isThere, signal });
    let clients = await this.clients(clientId);
    if (clientId === "") {
      const heard = new Set<RelayClient>();
      const hear = (client: RelayClient) =>
        askOne(client, (user) => {
          heard.add(client);
          users.add(user);
          return false;
        });
      await Promise.all(clients.map(hear));
      if (users.size > 1) throw new RunnerError("wrong-user", {}, { message: SEVERAL_USERS });
      clients = clients.filter((client) => heard.has(client));
    }
    for (const client of clients) {
      // A page that names no user is of none: it may be one of a user that is too busy to say so.
      if (client.id !== clientId && users.size === 0) users.add(undefined);
      const asked = await askOne(client, (user) => {
        if (users.size === 0) users.add(user);
        return users.has(user);
      });
      if (asked.is !== "passed") return asked;
    }
    return { is: "passed" };
  }

  /** The requesting page first, because its host has its threads; then the pages least likely to be frozen. */
  private async clients(asking: string): Promise<readonly RelayClient[]> {
    const windows = await this.scope.clients.matchAll({ type: "window", includeUncontrolled: true });
    const rank = ({ id, focused, visibilityState }: RelayClient): number =>
      id === asking ? 0 : focused ? 1 : visibilityState === "visible" ? 2 : 3;
    return [...windows].sort((a, b) => rank(a) - rank(b));
  }

  /** The id of this service worker's life lock; hosts notice its end by it. */
  private alive(): Promise<string> {
    const id = randomId();
    this.life ??= this.lives.hold(serviceWorkerLifeLockName(id)).then(
      () => id,
      (error: unknown) => {
        this.life = undefined;
        throw error;
      },
    );
    return this.life;
  }
}
