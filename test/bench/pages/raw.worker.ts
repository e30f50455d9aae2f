import { expose, type ProxyMarked } from "comlink";
import { openDB, type IDBPDatabase } from "idb";

/** As long as the events that FACTS.md was measured with. */
const EVENT_LENGTH = 295;

const event = { type: "TEXT_MESSAGE_CONTENT", messageId: crypto.randomUUID(), delta: "word " };
const padded = { ...event, pad: "" };
padded.pad = "x".repeat(EVENT_LENGTH - JSON.stringify(padded).length);

type Callback = ((event: object) => Promise<void>) & ProxyMarked;

const callbacks: Callback[] = [];
const ports: MessagePort[] = [];
let database: Promise<IDBPDatabase> | undefined;
let key = 0;

const db = (): Promise<IDBPDatabase> =>
  (database ??= openDB("bench-raw", 1, { upgrade: (fresh) => void fresh.createObjectStore("records") }));

async function put(value: unknown, durability: "relaxed" | "strict"): Promise<void> {
  const tx = (await db()).transaction("records", "readwrite", { durability });
  void tx.store.put(value, key++);
  tx.commit();
  await tx.done;
}

async function timed(work: () => unknown): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

async function each(count: number, work: () => unknown): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) times.push(await timed(work));
  return times;
}

const api = {
  /** What tabs hand over: a callback of comlink's and a port. */
  join(callback: Callback, port: MessagePort): void {
    callbacks.push(callback);
    ports.push(port);
  },
  nothing: (): null => null,

  /** One put in its own transaction and one awaited callback per tab, for each event. ms in all. */
  perEvent: (events: number, tabs: number): Promise<number> =>
    timed(async () => {
      for (let i = 0; i < events; i++) {
        await put(event, "relaxed");
        await Promise.all(callbacks.slice(0, tabs).map((callback) => callback(event)));
      }
    }),

  /** Records of `size` events, one per transaction. ms in all. */
  records: (events: number, size: number): Promise<number> => {
    const record = Array.from({ length: size }, (_, i) => ({ ...padded, i }));
    return timed(async () => {
      for (let i = 0; i < events; i += size) await put(record, "relaxed");
    });
  },

  /** Messages of `size` events to `tabs` tabs, until the last has told that it has the last. ms in all. */
  posts: (events: number, size: number, tabs: number): Promise<number> => {
    const batch = Array.from({ length: size }, (_, i) => ({ ...padded, i }));
    const readers = ports.slice(0, tabs);
    return timed(async () => {
      const taken = readers.map((port) => new Promise<void>((resolve) => (port.onmessage = () => resolve())));
      for (const port of readers) port.postMessage(events);
      for (let i = 0; i < events; i += size) for (const port of readers) port.postMessage(batch);
      await Promise.all(taken);
    });
  },

  /** Compare and swap in one strict transaction. ms each. */
  swaps: (count: number): Promise<number[]> =>
    each(count, async () => {
      const tx = (await db()).transaction("records", "readwrite", { durability: "strict" });
      const held = (await tx.store.get("head")) as { epoch: number } | undefined;
      void tx.store.put({ epoch: (held?.epoch ?? 0) + 1 }, "head");
      tx.commit();
      await tx.done;
    }),

  /** A Web Lock taken and let go. ms each. */
  locks: (count: number): Promise<number[]> => each(count, () => navigator.locks.request("bench-raw", () => undefined)),
};

export type RawApi = typeof api;

addEventListener("connect", (connecting) => {
  const [port] = (connecting as MessageEvent).ports;
  if (port === undefined) return;
  expose(api, port);
  port.postMessage("ready");
});
