import {
  answerServiceWorker,
  connectRuntime,
  installRuntimeFetch,
  RunnerError,
  type RuntimeConnection,
} from "ag-ui-local-runtime/client";
import { BASE } from "./fetch-base.js";
import { obeyed } from "./lab-orders.js";
import { useServiceWorker } from "./use-service-worker.js";
import { workerName } from "./worker-name.js";

/** How a request or a read ended that gave nothing. */
const failure = (error: unknown): string =>
  RunnerError.is(error) ? `RunnerError ${error.code}` : error instanceof Error ? error.name : String(error);

/** A front end that knows nothing but `fetch`, and a runtime behind it as the page's address says. */
class Fetching {
  /** The way to the runtime stands. */
  ready = false;
  /** How the requests that were begun ended, or how far they are. */
  readonly outcomes: Record<string, string> = {};
  undo: () => void = () => undefined;
  private readonly runtime: RuntimeConnection | undefined;
  private readonly reading = new Map<
    string,
    { reader: ReadableStreamDefaultReader<Uint8Array>; asking: AbortController }
  >();
  private readonly nativeFetch = window.fetch;

  constructor(
    private readonly worker: string,
    hasRuntime: boolean,
    way: string,
  ) {
    if (hasRuntime) {
      this.runtime = connectRuntime({
        hosts: {
          shared: (name) =>
            new SharedWorker(new URL("./fetch.worker.ts", import.meta.url), {
              type: "module",
              name: workerName(worker, name),
            }),
        },
      });
    }
    void this.begin(way);
  }

  private async begin(way: string): Promise<void> {
    if (way === "install" && this.runtime !== undefined) {
      this.undo = installRuntimeFetch(this.runtime, { basePath: BASE });
    } else if (way === "service-worker") {
      if (this.runtime !== undefined) this.undo = answerServiceWorker(this.runtime);
      await useServiceWorker();
    }
    this.ready = true;
  }

  get isNative(): boolean {
    return window.fetch === this.nativeFetch;
  }

  /** Status and text of an answer, or how it failed. */
  async ask(path: string, init: RequestInit = {}): Promise<{ status: number; text: string } | string> {
    try {
      const response = await fetch(path, init);
      return { status: response.status, text: await response.text() };
    } catch (error) {
      return failure(error);
    }
  }

  api(path: string, init?: RequestInit): ReturnType<Fetching["ask"]> {
    return this.ask(`${BASE}${path}`, init);
  }

  /**
   * A request whose answer is read by {@link next}. Firefox hands out what a service worker answers once there is
   * something of its body: the first piece is pushed at once.
   */
  async open(id: string, first: string): Promise<number> {
    const asking = new AbortController();
    const [response] = await Promise.all([
      fetch(`${BASE}/open?id=${id}`, { signal: asking.signal }),
      fetch(`${BASE}/push?id=${id}`, { method: "POST", body: first }),
    ]);
    this.reading.set(id, { reader: response.body!.getReader(), asking });
    return response.status;
  }

  /** The next piece of it, as text; "end", or how it failed. */
  async next(id: string): Promise<string> {
    try {
      const { done, value } = await this.reading.get(id)!.reader.read();
      return done ? "end" : new TextDecoder().decode(value);
    } catch (error) {
      return failure(error);
    }
  }

  /** A request that is not answered yet: `outcomes` says how it ended. */
  begun(id: string): void {
    const asking = new AbortController();
    // Nothing is ever read of it.
    this.reading.set(id, { reader: new Response("").body!.getReader(), asking });
    this.outcomes[id] = "pending";
    fetch(`${BASE}/late?id=${id}`, { method: "POST", signal: asking.signal }).then(
      async (response) => (this.outcomes[id] = `${response.status} ${await response.text()}`),
      (error: unknown) => (this.outcomes[id] = failure(error)),
    );
  }

  abort(id: string): void {
    this.reading.get(id)!.asking.abort();
  }

  async cancel(id: string): Promise<void> {
    await this.reading.get(id)!.reader.cancel();
  }

  /** Ends the host from within. */
  endHost(): Promise<void> {
    return obeyed({ end: this.worker });
  }
}

declare global {
  interface Window {
    fetching: Fetching;
  }
}

const asked = new URLSearchParams(location.search);
window.fetching = new Fetching(asked.get("worker") ?? "fetch", !asked.has("none"), asked.get("way") ?? "install");
