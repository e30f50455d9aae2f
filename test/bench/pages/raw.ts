import { proxy, transfer, wrap, type Remote } from "comlink";
import { stamp } from "./stamps.js";
import type { Followed, RawApi } from "./raw.worker.js";
import { checkTold } from "./told.js";

function start(name: string): { readonly api: Remote<RawApi>; readonly ready: Promise<void> } {
  const { port } = new SharedWorker(new URL("./raw.worker.ts", import.meta.url), { type: "module", name });
  const ready = new Promise<void>((resolve) =>
    port.addEventListener("message", ({ data }) => data === "ready" && resolve(), { once: true }),
  );
  port.start();
  return { api: wrap<RawApi>(port), ready };
}

const { api, ready } = start("raw");

const raw = {
  async join(): Promise<void> {
    await ready;
    const { port1, port2 } = new MessageChannel();
    let left = 0;
    port1.onmessage = ({ data }: MessageEvent<number | object>) => {
      if (typeof data === "number") left = data;
      else if (--left === 0) port1.postMessage("taken");
    };
    // Looked at, so that receiving is all that it costs.
    const callback = proxy(async (event: object) => void ("type" in event));
    await api.join(callback, transfer(port2, [port2]));
  },
  perEvent: (events: number, tabs: number): Promise<number> => api.perEvent(events, tabs),
  records: (events: number, size: number): Promise<number> => api.records(events, size),
  posts: (events: number, size: number, tabs: number): Promise<number> => api.posts(events, size, tabs),
  packedRecords: (events: number): Promise<number> => api.packedRecords(events),
  packedPosts: (events: number, tabs: number): Promise<number> => api.packedPosts(events, tabs),
  /** From a commit in one worker to a message in this tab from another one, which was told and read it. ms each. */
  async follows(count: number): Promise<number[]> {
    const other = start("follows");
    await other.ready;
    const { port1, port2 } = new MessageChannel();
    const times: number[] = [];
    const all = new Promise<void>((resolve, reject) => {
      port1.onmessage = ({ data }: MessageEvent<Followed>) => {
        times.push(stamp() - data.at);
        if (data.event === undefined) reject(new Error("told of what was not there"));
        else if (times.length === count) resolve();
      };
    });
    await other.api.followInto(transfer(port2, [port2]));
    await api.write(count);
    await all;
    return times;
  },
  tell: (count: number): Promise<void> => api.tell(count),
  toldHere: (count: number): Promise<number> => api.toldHere(count),
  /** The messages of a long thread out of the worker's database into this tab. ms. */
  async told(count: number): Promise<number> {
    const begun = performance.now();
    const messages = await api.told(count);
    const ms = performance.now() - begun;
    checkTold(messages, 0, count);
    return ms;
  },
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
