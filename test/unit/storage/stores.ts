import { afterAll, beforeAll, onTestFinished } from "vitest";
import { unpackChunk } from "../../../src/run/pack.js";
import {
  indexedDBRunStore,
  type IndexedDBRunStoreOptions,
} from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { plainCodec, type PayloadCodec } from "../../../src/storage/codec.js";
import type { RunStore } from "../../../src/storage/run-store.js";

export const freshName = (): string => `store-${crypto.randomUUID()}`;

let usual: IndexedDBRunStoreOptions = {};

/** All stores that tests of the suite around it open have these options, too. */
export function openWith(options: IndexedDBRunStoreOptions): void {
  beforeAll(() => void (usual = options));
  afterAll(() => void (usual = {}));
}

/** A store that is closed, and its database deleted, when the test ends. */
export function opened(dbName = freshName(), options: IndexedDBRunStoreOptions = {}): RunStore {
  const store = indexedDBRunStore({ ...usual, ...options, dbName });
  onTestFinished(async () => {
    await store.close();
    indexedDB.deleteDatabase(dbName);
  });
  return store;
}

/** Two hosts of one log. */
export function twoHosts(): { store: RunStore; other: RunStore } {
  const dbName = freshName();
  return { store: opened(dbName), other: opened(dbName) };
}

/** The events of a run of thread `t`, as their seq with their delta or type. */
export const eventsOf = async (store: RunStore, runIndex: number): Promise<string[]> =>
  (await store.chunks("t", runIndex, -1, Infinity))
    .flatMap(unpackChunk)
    .map(({ event, seq }) => `${seq} ${String(event["delta"] ?? event.type)}`);

/** Two hosts of one log; the first one's next payload of this kind is encoded only once `meanwhile` is done. */
export function hostsOf(
  kind: string,
  meanwhile: (other: RunStore) => Promise<unknown>,
): { store: RunStore; other: RunStore } {
  const dbName = freshName();
  const other = opened(dbName);
  let isDone = false;
  const codec: PayloadCodec = {
    ...plainCodec,
    encode: async (value, place) => {
      if (place[0] === kind && !isDone) {
        isDone = true;
        await meanwhile(other);
      }
      return value;
    },
  };
  return { store: opened(dbName, { codec }), other };
}
