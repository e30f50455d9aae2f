import { EventType, type BaseEvent } from "@ag-ui/client";
import { expose, type ProxyMarked } from "comlink";
import { openDB, type IDBPDatabase } from "idb";
import { ChunkBuilder } from "../../../src/run/pack.js";
import { say, stamp } from "./stamps.js";
import { toldMessage, type Told } from "./told.js";

/** As long as the events of earlier measurements. */
const EVENT_LENGTH = 295;

interface Committed {
  readonly key: number;
  readonly at: number;
}

export interface Followed extends Committed {
  /** Undefined: it was not there. */
  readonly event: unknown;
}

const event = { type: EventType.TEXT_MESSAGE_CONTENT, messageId: crypto.randomUUID(), delta: "word " };
const padded = { ...event, pad: "" };
padded.pad = "x".repeat(EVENT_LENGTH - JSON.stringify(padded).length);

/** Deltas of a chunk as the runtime stores and sends it. */
const PACKED = 1_000;

function packedChunk(): object {
  const builder = new ChunkBuilder({ threadId: "raw", runIndex: 0, epoch: 1 });
  const { type, messageId, delta } = event;
  for (let i = 0; i < PACKED; i++) builder.add({ type, messageId, delta } as BaseEvent, Date.now());
  return builder.take()!;
}

/** Over which one worker tells another what it has committed. */
const committed = new BroadcastChannel("bench-raw-committed");

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

/** From the first of `count` messages to the last tab's word that it has the last. */
function posted(message: object, count: number, tabs: number): Promise<number> {
  const readers = ports.slice(0, tabs);
  if (readers.length !== tabs) throw new Error(`${readers.length} tabs instead of ${tabs}`);
  return timed(async () => {
    const taken = readers.map((port) => new Promise<void>((resolve) => (port.onmessage = () => resolve())));
    for (const port of readers) port.postMessage(count);
    for (let i = 0; i < count; i++) for (const port of readers) port.postMessage(message);
    await Promise.all(taken);
  });
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
    return posted(batch, Math.ceil(events / size), tabs);
  },

  /** As `records` and `posts` with {@link PACKED} deltas at a time, in the form that the runtime gives them. ms in all. */
  packedRecords: (events: number): Promise<number> => {
    const chunk = packedChunk();
    return timed(async () => {
      for (let i = 0; i < events; i += PACKED) await put(chunk, "relaxed");
    });
  },
  packedPosts: (events: number, tabs: number): Promise<number> =>
    posted(packedChunk(), Math.ceil(events / PACKED), tabs),

  /** Stores the messages of a long thread, a record each. */
  async tell(count: number): Promise<void> {
    const tx = (await db()).transaction("records", "readwrite");
    for (let i = 0; i < count; i++) void tx.store.put(toldMessage(i), ["told", count, i]);
    await tx.done;
  },
  /** All of them. */
  async told(count: number): Promise<Told[]> {
    return (await db()).getAll("records", IDBKeyRange.bound(["told", count], ["told", count, []]));
  },
  /** The same, not handed out. ms. */
  toldHere: (count: number): Promise<number> => timed(() => api.told(count)),

  /** Records of one event each, one after the other, each told of with the moment at which it was committed. */
  async write(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await put(event, "relaxed");
      say(committed, { key: key - 1, at: stamp() } satisfies Committed);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  },
  /** Reads what another worker writes, and hands the moments on. */
  async followInto(port: MessagePort): Promise<void> {
    const records = await db();
    committed.onmessage = async ({ data }: MessageEvent<Committed>) => {
      const read: unknown = await records.get("records", data.key);
      port.postMessage({ ...data, event: read } satisfies Followed);
    };
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
