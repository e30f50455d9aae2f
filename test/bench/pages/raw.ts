import { proxy, transfer, wrap } from "comlink";
import type { RawApi } from "./raw.worker.js";

const worker = new SharedWorker(new URL("./raw.worker.ts", import.meta.url), { type: "module" });
const ready = new Promise<void>((resolve) =>
  worker.port.addEventListener("message", ({ data }) => data === "ready" && resolve(), { once: true }),
);
worker.port.start();
const api = wrap<RawApi>(worker.port);

const raw = {
  async join(): Promise<void> {
    await ready;
    const { port1, port2 } = new MessageChannel();
    let left = 0;
    port1.onmessage = ({ data }: MessageEvent<number | readonly object[]>) => {
      if (typeof data === "number") {
        left = data;
        return;
      }
      left -= data.length;
      if (left <= 0) port1.postMessage("taken");
    };
    // Looked at, so that receiving is all that it costs.
    const callback = proxy(async (event: object) => void ("type" in event));
    await api.join(callback, transfer(port2, [port2]));
  },
  perEvent: (events: number, tabs: number): Promise<number> => api.perEvent(events, tabs),
  records: (events: number, size: number): Promise<number> => api.records(events, size),
  posts: (events: number, size: number, tabs: number): Promise<number> => api.posts(events, size, tabs),
  swaps: (count: number): Promise<number[]> => api.swaps(count),
  locks: (count: number): Promise<number[]> => api.locks(count),
  /** Calls that do nothing, there and back. ms each. */
  async calls(count: number): Promise<number[]> {
    const times: number[] = [];
    for (let i = 0; i < count; i++) {
      const begun = performance.now();
      await api.nothing();
      times.push(performance.now() - begun);
    }
    return times;
  },
};

export type RawBench = typeof raw;

Object.assign(globalThis, { raw });
