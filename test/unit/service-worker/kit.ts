import { onTestFinished } from "vitest";
import { answerServiceWorker } from "../../../src/client/service-worker-relay.js";
import type { RelayClient, RelayFetchEvent, RelayScope } from "../../../src/service-worker/scope.js";
import { relayRuntime } from "../../../src/service-worker/relay-runtime.js";

/** How long a page has to be heard of, in ms. */
export const TIMEOUT_MS = 1_000;

const ORIGIN = "http://site.test";

/** A page of the service worker's origin. What is posted to it stays with it until it listens. */
export class FakePage {
  readonly container = new EventTarget() as unknown as ServiceWorkerContainer;
  readonly asked: unknown[] = [];
  private readonly held: { data: unknown; ports: readonly Transferable[] }[] = [];
  private isListening = false;

  constructor(
    readonly id: string,
    readonly look: Partial<RelayClient> = {},
  ) {
    this.container.startMessages = () => {
      this.isListening = true;
      this.held.splice(0).forEach(({ data }) => this.hear(data));
    };
  }

  /** The page has this runtime from now on. Returns how to end that. */
  answer(runtime: Parameters<typeof answerServiceWorker>[0]): () => void {
    return answerServiceWorker(runtime, this.container);
  }

  client(): RelayClient {
    return {
      ...this.look,
      id: this.id,
      postMessage: (message, ports) => {
        this.asked.push(message);
        // The words' port crosses as one of these tests' own.
        if (this.isListening) this.hear(message);
        else this.held.push({ data: message, ports });
      },
    };
  }

  /** @param more what is special about the event */
  hear(data: unknown, more: object = {}): void {
    const event = Object.assign(new Event("message"), {
      data,
      source: { scriptURL: `${ORIGIN}/sw.js` },
      origin: ORIGIN,
      ...more,
    });
    this.container.dispatchEvent(event);
  }
}

/** A service worker that relays what is below "/api", for these pages. */
export const serviceWorkerOf = (...pages: FakePage[]) => patientServiceWorkerOf(TIMEOUT_MS, ...pages);

/** One that waits longer for a page. */
export function patientServiceWorkerOf(timeoutMs: number, ...pages: FakePage[]) {
  const listeners = new Set<(event: RelayFetchEvent) => void>();
  const open = new Set(pages);
  const clients = (): RelayClient[] => [...open].map((page) => page.client());
  const scope: RelayScope = {
    location: { origin: ORIGIN },
    clients: {
      get: async (id) => clients().find((client) => client.id === id),
      matchAll: async () => clients(),
    },
    addEventListener: (_, listener) => void listeners.add(listener),
    removeEventListener: (_, listener) => void listeners.delete(listener),
  };
  const end = relayRuntime({ basePath: "/api", timeoutMs }, scope);
  onTestFinished(end);
  return {
    end,
    close: (page: FakePage) => void open.delete(page),
    /** Dispatches a request; undefined where nobody answers it. */
    fetch(path: string, init: RequestInit = {}, clientId = "", mode: RequestMode = "cors") {
      let response: Promise<Response> | undefined;
      let isAwake = false;
      const event: RelayFetchEvent = {
        // No script can make a request of a navigation's.
        request: Object.defineProperty(new Request(new URL(path, ORIGIN), init), "mode", { value: mode }),
        clientId,
        respondWith: (given) => (response = given),
        waitUntil: (work) => {
          isAwake = true;
          void work.then(() => (isAwake = false));
        },
      };
      for (const listener of listeners) listener(event);
      response?.catch(() => undefined);
      return { response, isAwake: () => isAwake };
    },
  };
}
