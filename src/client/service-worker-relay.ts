import { toErrorData } from "../wire/errors.js";
import { relayMessageOf, relayOrderOf, type PageWord } from "../wire/service-worker-words.js";
import type { RuntimeConnection } from "./connect-runtime.js";

/**
 * Lets the service workers of this origin that call `relayRuntime` reach this page's host. Where the browser has no
 * service workers (plain http), there is nothing to answer.
 *
 * @returns how to end it; what was handed over goes on
 */
export function answerServiceWorker(
  runtime: Pick<RuntimeConnection, "relay">,
  container: ServiceWorkerContainer | undefined = ownContainer(),
): () => void {
  if (container === undefined) return () => undefined;
  const listen = (event: MessageEvent<unknown>): void => {
    if (!isOfWorker(event)) return;
    const message = relayMessageOf(event.data);
    if (message === undefined) return;
    // One answer is enough where a page has several runtimes.
    event.stopImmediatePropagation();
    answerOn(message.words, runtime);
  };
  container.addEventListener("message", listen);
  // Messages are kept back until the document is loaded, or this.
  container.startMessages();
  return () => container.removeEventListener("message", listen);
}

const ownContainer = (): ServiceWorkerContainer | undefined =>
  (globalThis as { navigator?: Partial<Navigator> }).navigator?.serviceWorker;

/** Only service workers of this origin have clients here; what else dispatches an event has no worker for its source. */
function isOfWorker({ source, origin }: MessageEvent<unknown>): boolean {
  return source !== null && "scriptURL" in source && origin === globalThis.location.origin;
}

function answerOn(words: MessagePort, runtime: Pick<RuntimeConnection, "relay">): void {
  const say = (word: PageWord): void => words.postMessage(word);
  words.onmessage = async ({ data }: MessageEvent<unknown>) => {
    words.onmessage = null;
    try {
      const order = relayOrderOf(data);
      if (order === undefined) return;
      const { hostId, dbName } = await runtime.relay(order.request, order.port);
      say({ type: "taken", hostId, dbName });
    } catch (error) {
      say({ type: "refused", error: toErrorData(error) });
    } finally {
      words.close();
    }
  };
  say({ type: "heard" });
}
