import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import { expose } from "comlink";
import { ChunkBuilder } from "../../../src/run/pack.js";
import type { Chunk } from "../../../src/run/types.js";
import { createEncryptionKey } from "../../../src/storage/encryption/keys.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import type { Claim, RunStore } from "../../../src/storage/run-store.js";

export type StoredHow = "plain" | "encrypted";
/** `text`: deltas of one message, which are packed; `custom`: events that are stored one by one. */
export type Kind = "text" | "custom";

const stores: Partial<Record<StoredHow, Promise<RunStore>>> = {};
let threads = 0;

const storeOf = (how: StoredHow): Promise<RunStore> =>
  (stores[how] ??= (async () => {
    const dbName = `bench-encryption-${how}`;
    if (how === "plain") return indexedDBRunStore({ dbName });
    return indexedDBRunStore({ dbName, encryption: { key: await createEncryptionKey() } });
  })());

const eventOf = (kind: Kind, n: number): BaseEvent =>
  kind === "text"
    ? { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "message", delta: `word ${n} ` }
    : {
        type: EventType.CUSTOM,
        name: "progress",
        value: { step: n, of: "a document", pages: [n, n + 1], done: false },
      };

function chunkOf(claim: Claim, kind: Kind, firstSeq: number, count: number): Chunk {
  const builder = new ChunkBuilder({ ...claim, firstSeq });
  for (let n = 0; n < count; n++) builder.add(eventOf(kind, firstSeq + n), 1_000);
  return builder.take()!;
}

async function claimed(store: RunStore): Promise<Claim> {
  const threadId = `thread ${++threads}`;
  const input = { messages: [{ id: "u", role: "user" as const, content: "What is it about?" }] };
  const start = {
    holder: "host",
    startedAt: 1,
    base: undefined,
    prevRunIndex: null,
    fingerprint: "1:r",
    title: "title",
  };
  const result = await store.claim({ threadId, runId: "r", input, ...start });
  if (result.is !== "claimed") throw new Error(result.is);
  return result.claim;
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
};

async function settle(store: RunStore, claim: Claim, messages: number, firstSeq: number): Promise<void> {
  const terminal: BaseEvent = { type: EventType.RUN_FINISHED, threadId: claim.threadId, runId: claim.runId };
  const builder = new ChunkBuilder({ ...claim, firstSeq });
  builder.add(terminal, 2_000);
  const content = "What a message of some length says. ".repeat(20);
  const rows = Array.from({ length: messages }, (_, n): { message: Message } => ({
    message: { id: `message ${n}`, role: "assistant", content },
  }));
  await store.settle(claim, {
    status: "finished",
    endedAt: 2_000,
    chunk: builder.take()!,
    ownTerminal: true,
    closing: { runStarted: { type: EventType.RUN_STARTED }, customs: [], terminal },
    derived: { messages: rows, rewritten: false, state: { n: 1 }, interrupts: [] },
    bytes: 0,
  });
}

const api = {
  /** Chunks of `size` events, one after the other. ms in all. */
  async appends(how: StoredHow, kind: Kind, size: number, chunks: number): Promise<number> {
    const store = await storeOf(how);
    const claim = await claimed(store);
    const all = Array.from({ length: chunks }, (_, n) => chunkOf(claim, kind, n * size, size));
    return timed(async () => {
      for (const chunk of all) await store.append(claim, chunk);
    });
  },

  /** All events of a run. ms. */
  async reads(how: StoredHow, kind: Kind, events: number): Promise<number> {
    const store = await storeOf(how);
    const claim = await claimed(store);
    for (let seq = 0; seq < events; seq += 500) await store.append(claim, chunkOf(claim, kind, seq, 500));
    let read = 0;
    const ms = await timed(async () => {
      for (const { count } of await store.chunks(claim.threadId, claim.runIndex, -1, Infinity)) read += count;
    });
    if (read !== events) throw new Error(`${read} events instead of ${events}`);
    await store.deleteThread(claim.threadId);
    return ms;
  },

  /** The end of a run that leaves so many messages. ms. */
  async settles(how: StoredHow, messages: number): Promise<number> {
    const store = await storeOf(how);
    const claim = await claimed(store);
    return timed(() => settle(store, claim, messages, 0));
  },
};

export type EncryptionApi = typeof api;

addEventListener("connect", (connecting) => {
  const [port] = (connecting as MessageEvent).ports;
  if (port === undefined) return;
  expose(api, port);
  port.postMessage("ready");
});
