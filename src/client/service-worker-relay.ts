import { RunnerError } from "../run/errors.js";
import { checkKind } from "../run/options.js";
import { toErrorData } from "../wire/errors.js";
import { relayMessageOf, relayOrderOf, type PageWord } from "../wire/service-worker-words.js";
import type { RuntimeConnection } from "./connect-runtime.js";

/**
 * Lets the service workers of this origin that call `relayRuntime` reach this page's host. A no-op where the browser
 * has no service workers (plain http). Ends when the connection is closed: the page may then connect for another user.
 *
 * @returns ends it; requests that were handed over go on
 * @throws RunnerError `invalid-input` if `runtime` is no connection
 */
export function answerServiceWorker(
  runtime: Pick<RuntimeConnection, "relay" | "user"> & Partial<Pick<RuntimeConnection, "status$">>,
  container: ServiceWorkerContainer | undefined = ownContainer(),
): () => void {
  checkKind("runtime", runtime, ["relay"]);
  if (container === undefined) return () => undefined;
  const listen = (event: MessageEvent<unknown>): void => {
    if (!isOfWorker(event)) return;
    const message = relayMessageOf(event.data);
    if (message === undefined) return;
    // Only one of a page's runtimes answers.
    event.stopImmediatePropagation();
    answerOn(message.words, runtime);
  };
  container.addEventListener("message", listen);
  // Else the browser holds messages back until the document has loaded.
  container.startMessages();
  const end = (): void => container.removeEventListener("message", listen);
  const closing = runtime.status$?.subscribe({ complete: end });
  return () => {
    end();
    closing?.unsubscribe();
  };
}

const ownContainer = (): ServiceWorkerContainer | undefined =>
  (globalThis as { navigator?: Partial<Navigator> }).navigator?.serviceWorker;

/** Only a service worker of this origin is the source of its events; events that a script dispatches have none. */
function isOfWorker({ source, origin }: MessageEvent<unknown>): boolean {
  return source !== null && "scriptURL" in source && origin === globalThis.location.origin;
}

function answerOn(words: MessagePort, runtime: Pick<RuntimeConnection, "relay" | "user">): void {
  const { user } = runtime;
  const say = (word: PageWord): void => words.postMessage(word);
  words.onmessage = async ({ data }: MessageEvent<unknown>) => {
    words.onmessage = null;
    try {
      const order = relayOrderOf(data);
      if (order === undefined) return;
      if (order.user !== user) throw new RunnerError("wrong-user");
      const { hostId, dbName } = await runtime.relay(order.request, order.port);
      say({ type: "taken", hostId, dbName });
    } catch (error) {
      say({ type: "refused", error: toErrorData(error) });
    } finally {
      words.close();
    }
  };
  say({ type: "heard", ...(user !== undefined && { user }) });
}
