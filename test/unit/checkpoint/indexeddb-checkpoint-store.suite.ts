import { deleteDB, openDB, type IDBPDatabase } from "idb";
import { describe, expect, onTestFinished, test } from "vitest";
import { IndexedDBCheckpointStore } from "../../../src/checkpoint/indexeddb/indexeddb-checkpoint-store.js";
import type { CheckpointSchema } from "../../../src/checkpoint/indexeddb/schema.js";
import type { PayloadCodec } from "../../../src/storage/codec.js";
import { failing, loseCommitOver, watchTransactions, type Loss } from "../storage/idb-spy.js";
import { countReads, type Reads } from "../storage/idb-reads.js";
import { impatient } from "../storage/kit.js";
import { checkpoint, freshName, openedStore } from "./kit.js";

const STORES = ["keys", "metadata", "origins", "states"];
const LOSSES: readonly Loss[] = ["committed", "aborted"];

async function rawOf(dbName: string): Promise<IDBPDatabase<CheckpointSchema>> {
  const db = await openDB<CheckpointSchema>(`${dbName}.checkpoints`);
  onTestFinished(() => db.close());
  return db;
}

/** What only a store in IndexedDB has to do, on whichever IndexedDB is there. */
export function describeCheckpointFaults(name: string): void {
  describe(name, () => {
    describe("a write", () => {
      test("is one strict transaction over all that it changes", async () => {
        const store = openedStore();
        await store.save(checkpoint("a"));
        const seen = watchTransactions();
        await store.save(checkpoint("a"));
        await store.saveIf(checkpoint("b"), "a");
        await store.fork("a");
        await store.delete("a");
        const writes = seen.filter(({ mode }) => mode === "readwrite");
        expect(writes).toMatchObject(
          ["save", "saveIf", "fork", "delete"].map(() => ({ durability: "strict", stores: STORES })),
        );
      });

      test.each(LOSSES)("whose end is not heard (it was %s) is there once", async (how) => {
        const store = openedStore();
        await store.save(checkpoint("a"));
        let loss = loseCommitOver(STORES, how);
        await store.save(checkpoint("b"));
        expect(loss.lost()).toBe(true);
        loss = loseCommitOver(STORES, how);
        const runId = await store.fork("b");
        expect(loss.lost()).toBe(true);
        expect(await store.list("graph", { runId })).toHaveLength(1);
        expect(await store.list("graph")).toHaveLength(3);
      });

      test.each(LOSSES)("of saveIf whose end is not heard (it was %s) is no conflict with itself", async (how) => {
        const store = openedStore();
        await store.save(checkpoint("a"));
        const loss = loseCommitOver(STORES, how);
        expect(await store.saveIf(checkpoint("b"), "a")).toMatchObject({ is: "saved", latest: { id: "b" } });
        expect(loss.lost()).toBe(true);
        // The same call once more is another one.
        expect(await store.saveIf(checkpoint("b"), "a")).toMatchObject({ is: "conflict" });
      });

      test("of saveIf that another one came behind is told as what it was: saved", async () => {
        const dbName = freshName();
        const store = openedStore(dbName);
        const other = openedStore(dbName);
        await store.save(checkpoint("a"));
        await other.get("a");
        let behind: Promise<unknown> = Promise.resolve();
        loseCommitOver(STORES, "committed", () => (behind = other.saveIf(checkpoint("c"), "b")));
        expect(await store.saveIf(checkpoint("b"), "a")).toMatchObject({ is: "saved", latest: { id: "c" } });
        expect(await behind).toMatchObject({ is: "saved" });
      });

      test("on a full disk says so, writes nothing, and reads go on", async () => {
        const store = openedStore();
        await store.save(checkpoint("a"));
        const writes = [
          () => store.save(checkpoint("b")),
          () => store.saveIf(checkpoint("b"), "a"),
          () => store.fork("a"),
        ];
        for (const write of writes) {
          const full = failing(({ mode }) => mode === "readwrite");
          const put = IDBObjectStore.prototype.put;
          IDBObjectStore.prototype.put = function (...record) {
            if (this.name === "metadata")
              full({ db: "", stores: STORES, mode: "readwrite", durability: "strict", deleted: 0, ended: true });
            return put.apply(this, record);
          };
          await expect(write()).rejects.toMatchObject({ code: "quota-exceeded" });
          IDBObjectStore.prototype.put = put;
        }
        expect((await store.list("graph")).map(({ id }) => id)).toEqual(["a"]);
        expect(await store.get("b")).toBeNull();
      });

      test("of what can be cloned but not stored is refused, and leaves what was there", async () => {
        const store = openedStore();
        await store.save(checkpoint("a"));
        const put = IDBObjectStore.prototype.put;
        onTestFinished(() => {
          IDBObjectStore.prototype.put = put;
        });
        IDBObjectStore.prototype.put = function (...record) {
          // As for shared memory, or a compiled WebAssembly module.
          if (this.name === "states") throw new DOMException("It cannot be stored", "DataCloneError");
          return put.apply(this, record);
        };
        await expect(store.save(checkpoint("a", { nodeId: "other" }))).rejects.toMatchObject({ code: "invalid-input" });
        IDBObjectStore.prototype.put = put;
        expect(await store.get("a")).toEqual(checkpoint("a"));
        expect(await store.load("run", "other")).toBeNull();
      });
    });

    describe("a query", () => {
      /** What each costs in a store of so many checkpoints. */
      async function costs(count: number): Promise<Record<string, Reads>> {
        const store = openedStore();
        const rest = Array.from({ length: count }, (_, n) => [
          checkpoint(`a${n}`, { timestamp: n }),
          checkpoint(`b${n}`, { timestamp: n, runId: "other", nodeId: "other" }),
        ]);
        await Promise.all(rest.flat().map((it) => store.save(it)));
        const [, second] = await store.list("graph", { limit: 2 });
        const queries = {
          get: () => store.get("a1"),
          latest: () => store.latest("run"),
          load: () => store.load("run", "node"),
          list: () => store.list("graph", { limit: 3 }),
          listOfRun: () => store.list("graph", { runId: "run", limit: 3 }),
          before: () => store.list("graph", { before: second, limit: 3 }),
          after: () => store.list("graph", { after: { timestamp: 0 }, limit: 3 }),
          lineage: () => store.lineage("a1"),
          save: () => store.save(checkpoint("new", { timestamp: 2 })),
          saveIf: () => store.saveIf(checkpoint("newer", { timestamp: 2 }), "none"),
          fork: () => store.fork("a1"),
          prune: () => store.prune({ keep: 10_000 }),
        };
        const all: Record<string, Reads> = {};
        for (const [query, ask] of Object.entries(queries)) {
          const reads = countReads();
          await ask();
          all[query] = reads.stop();
        }
        return all;
      }

      test("reads what it gives, however many there are", async () => {
        const few = await costs(10);
        // One of each asks whether the database is encrypted.
        expect(few["latest"]).toEqual({ requests: 3, keys: 1, values: 1 });
        expect(few["list"]).toEqual({ requests: 2, keys: 0, values: 3 });
        expect(await costs(200)).toEqual(few);
      });

      test("of a list opens no states", async () => {
        const store = openedStore();
        await store.save(checkpoint("a"));
        const seen = watchTransactions();
        await store.list("graph");
        await store.list("graph", { runId: "run", limit: 1, after: { timestamp: 1 } });
        expect(seen.map(({ stores }) => stores)).toEqual([["keys"], ["metadata"], ["keys"], ["metadata"]]);
      });
    });

    test("deletions in bulk go in pieces, the oldest first, so that who is cut off keeps the newest", async () => {
      const dbName = freshName();
      const store = openedStore(dbName);
      await Promise.all(Array.from({ length: 300 }, (_, n) => store.save(checkpoint(`${n}`, { timestamp: n }))));
      for (const bulk of [() => store.prune({ keep: 1 }), () => store.deleteRun("run")]) {
        let writes = 0;
        const seen = watchTransactions(({ mode }) => {
          if (mode === "readwrite" && ++writes > 1) throw new DOMException("full", "QuotaExceededError");
        });
        const before = await store.list("graph");
        await expect(bulk()).rejects.toMatchObject({ code: "quota-exceeded" });
        const left = await store.list("graph");
        expect(left).toEqual(before.slice(0, left.length));
        expect(before.length - left.length).toBe(128);
        expect(Math.max(...seen.map(({ deleted }) => deleted))).toBeLessThan(300);
        writes = -Infinity;
      }
      expect(await store.latest("run")).toMatchObject({ id: "299" });
    });

    describe("a record that is not valid", () => {
      const corruptions: readonly [string, "metadata" | "states", (record: never) => unknown][] = [
        ["metadata without a node", "metadata", (record: { nodeId?: string }) => ({ ...record, nodeId: 5 })],
        ["metadata with a size that is none", "metadata", (record: object) => ({ ...record, stateSize: -1 })],
        ["metadata out of place", "metadata", (record: object) => ({ ...record, place: [-5, 0] })],
        ["a state that is none", "states", (record: object) => ({ ...record, checkpoint: "x" })],
        [
          "a state without results",
          "states",
          (record: object) => ({ ...record, checkpoint: { ...checkpoint("a"), nodeResults: 1 } }),
        ],
        ["a state of another checkpoint", "states", (record: object) => ({ ...record, checkpoint: checkpoint("b") })],
        [
          "a state of another run",
          "states",
          (record: object) => ({ ...record, checkpoint: checkpoint("a", { runId: "x" }) }),
        ],
      ];

      test.each(corruptions)(
        "(%s) is told by its id and left as it is; others are read, and it can go",
        async (_, where, change) => {
          const dbName = freshName();
          const store = openedStore(dbName);
          await store.save(checkpoint("other", { runId: "other", graphId: "other" }));
          await store.save(checkpoint("a"));
          const db = await rawOf(dbName);
          const record: unknown = change((await db.get(where, "a")) as never);
          // What is no record of ours.
          await db.put(where, record as never);
          const told = { code: "corrupt-record", details: { store: where, checkpointId: "a" } };
          if (where === "metadata") await expect(store.list("graph")).rejects.toMatchObject(told);
          else await expect(store.load("run")).rejects.toMatchObject(told);
          expect(await db.get(where, "a")).toEqual(record);
          expect(await store.list("other")).toHaveLength(1);
          expect(await store.latest("other")).toMatchObject({ id: "other" });
          await store.save(checkpoint("a"));
          expect(await store.list("graph")).toHaveLength(1);
          await db.put(where, record as never);
          await store.delete("a");
          expect(await store.get("a")).toBeNull();
          expect(await store.list("graph")).toEqual([]);
        },
      );

      test.each([Number.MAX_SAFE_INTEGER, Infinity, NaN, "7"])(
        "(a counter of turns at %s) does no harm to what is saved",
        async (turn) => {
          const dbName = freshName();
          const store = openedStore(dbName);
          await store.save(checkpoint("a"));
          const db = await rawOf(dbName);
          await db.put("origins", { runId: "", turn } as never);
          for (const id of ["b", "c"]) await store.save(checkpoint(id));
          expect((await store.list("graph")).map(({ id }) => id)).toEqual(["c", "b", "a"]);
        },
      );

      test("of a fork's source is told, and nothing is written", async () => {
        const dbName = freshName();
        const store = openedStore(dbName);
        await store.save(checkpoint("a"));
        const db = await rawOf(dbName);
        await db.put("states", { id: "a", checkpoint: null });
        await expect(store.fork("a")).rejects.toMatchObject({ code: "corrupt-record" });
        expect(await db.count("metadata")).toBe(1);
      });

      test("of what a run came from is told to whoever asks for it", async () => {
        const dbName = freshName();
        const store = openedStore(dbName);
        await store.save(checkpoint("a"));
        const db = await rawOf(dbName);
        await db.put("origins", { runId: "run", from: { checkpointId: 1 } } as never);
        await expect(store.lineage("a")).rejects.toMatchObject({
          code: "corrupt-record",
          details: { store: "origins", runId: "run" },
        });
        expect(await store.latest("run")).toMatchObject({ id: "a" });
      });

      test("metadata without its state is told", async () => {
        const dbName = freshName();
        const store = openedStore(dbName);
        await store.save(checkpoint("a"));
        await (await rawOf(dbName)).delete("states", "a");
        await expect(store.latest("run")).rejects.toMatchObject({ code: "corrupt-record" });
        expect(await store.get("a")).toBeNull();
      });
    });

    describe("the connection", () => {
      test("two stores of one name are one, and a store opened later finds everything", async () => {
        const dbName = freshName();
        const store = openedStore(dbName);
        const other = openedStore(dbName);
        await Promise.all([store.save(checkpoint("a")), other.save(checkpoint("b"))]);
        await store.close();
        expect(await other.list("graph")).toHaveLength(2);
        expect(await openedStore(dbName).list("graph")).toEqual(await other.list("graph"));
      });

      test("is opened anew where it fell", async () => {
        const store = openedStore();
        await store.save(checkpoint("a"));
        let left = 1;
        watchTransactions(() => {
          if (left-- > 0) throw new DOMException("The database connection is closing.", "InvalidStateError");
        });
        await store.save(checkpoint("b"));
        left = 1;
        expect(await store.get("b")).toEqual(checkpoint("b"));
        left = 2;
        await expect(store.get("b")).rejects.toMatchObject({ code: "storage-lost" });
      });

      test("gives way to a newer version, and says that it is outdated", async () => {
        const dbName = freshName();
        const store = openedStore(dbName);
        await store.save(checkpoint("a"));
        const newer = await openDB(`${dbName}.checkpoints`, 99);
        await expect(store.save(checkpoint("b"))).rejects.toMatchObject({ code: "outdated" });
        newer.close();
        await expect(openedStore(dbName).get("a")).rejects.toMatchObject({ code: "outdated" });
      });

      test("lets a database be deleted, and begins it anew", async () => {
        const dbName = freshName();
        const store = openedStore(dbName);
        await store.save(checkpoint("a"));
        await deleteDB(`${dbName}.checkpoints`);
        expect(await store.get("a")).toBeNull();
        await store.save(checkpoint("b"));
        expect(await store.list("graph")).toHaveLength(1);
      });

      test("to a database that is somebody else's is refused", async () => {
        const dbName = freshName();
        const theirs = await openDB(`${dbName}.checkpoints`, 1, {
          upgrade: (db) => void db.createObjectStore("theirs"),
        });
        theirs.close();
        await expect(openedStore(dbName).get("a")).rejects.toMatchObject({ code: "storage-unavailable" });
      });

      test("that storage does not allow is told, and tried again at the next call", async () => {
        const store = openedStore();
        const { open } = IDBFactory.prototype;
        onTestFinished(() => {
          IDBFactory.prototype.open = open;
        });
        IDBFactory.prototype.open = () => {
          throw new DOMException("The operation is insecure.", "SecurityError");
        };
        await expect(store.save(checkpoint("a"))).rejects.toMatchObject({ code: "storage-unavailable" });
        IDBFactory.prototype.open = open;
        await store.save(checkpoint("a"));
      });

      test("that is not to be had in time is told", async () => {
        const dbName = freshName();
        const deaf = await openDB(`${dbName}.checkpoints`, 1, { upgrade: (db) => void db.createObjectStore("x") });
        // Waits for the deaf one, and ours behind it.
        const upgrading = openDB(`${dbName}.checkpoints`, 2).then((db) => db.close());
        const store = openedStore(dbName, { clock: impatient, openTimeoutMs: 3_000 });
        await expect(store.get("a")).rejects.toMatchObject({ code: "storage-unavailable" });
        deaf.close();
        await upgrading;
      });

      test.each([
        ["dbName", { dbName: "" }],
        ["dbName", { dbName: 5 }],
        ["openTimeoutMs", { openTimeoutMs: 0 }],
        ["openTimeoutMs", { openTimeoutMs: NaN }],
      ])("is refused for a wrong %s", (field, options) => {
        expect(() => new IndexedDBCheckpointStore(options as never)).toThrow(
          expect.objectContaining({ code: "invalid-input", details: { field } }),
        );
      });
    });

    test("everything but ids, times and sizes passes the codec", async () => {
      const dbName = freshName();
      const codec: PayloadCodec = {
        encode: async (value) => `secret ${btoa(JSON.stringify(value))}`,
        decode: async (stored) => JSON.parse(atob(String(stored).slice(7))) as unknown,
      };
      const store = openedStore(dbName, { codec });
      await store.save(checkpoint("a"));
      const runId = await store.fork("a", { artifacts: { tides: 1 } });
      expect(await store.get("a")).toEqual(checkpoint("a"));
      expect(await store.latest(runId)).toMatchObject({ state: { artifacts: { tides: 1 } } });
      const db = await rawOf(dbName);
      const stored = JSON.stringify([
        await db.getAll("metadata"),
        await db.getAll("states"),
        await db.getAll("origins"),
      ]);
      expect(stored).not.toContain("tides");
    });
  });
}
