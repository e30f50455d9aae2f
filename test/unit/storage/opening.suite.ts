import { deleteDB, openDB } from "idb";
import { describe, expect, onTestFinished, test } from "vitest";
import { watchTransactions } from "./idb-spy.js";
import { apart, chunkOf, claimed, delta, impatient } from "./kit.js";
import { createVersion1 } from "./released-layouts.js";
import { freshName, opened } from "./stores.js";
import { claim, live } from "./write-cases.js";

/** How a store opens its database and gives it up, on whichever IndexedDB is there. */
export function describeOpening(name: string): void {
  describe(name, () => {
    test("a newer build is given way in time, though whoever prepares for it never ends (L13)", async () => {
      const dbName = freshName();
      const told: boolean[] = [];
      const onOutdated = (deleted: boolean): Promise<void> => {
        told.push(deleted);
        return new Promise(() => undefined);
      };
      const store = opened(dbName, { clock: impatient, openTimeoutMs: 1_000_000, onOutdated });
      // By one that is patient: its commits may take as long as a busy disk does.
      await live(opened(dbName));
      await store.head("t");
      const upgrading = openDB(dbName, 99);
      // What is under way comes to its end.
      const appends = [2, 3, 4].map((seq) => store.append(claim, chunkOf(claim, seq, [delta("c")])));
      expect(await Promise.all(appends)).toEqual([{}, {}, {}]);
      const newer = await upgrading;
      expect(told).toEqual([false]);
      await expect(store.append(claim, chunkOf(claim, 5, [delta("late")]))).rejects.toMatchObject({ code: "outdated" });
      await expect(store.head("t")).rejects.toMatchObject({ code: "outdated" });
      expect(await newer.count("chunks")).toBe(6);
      newer.close();
    });

    test("a database that is deleted under a store is let go, and begun anew (L10)", async () => {
      const dbName = freshName();
      const told: boolean[] = [];
      const store = opened(dbName, { onOutdated: async (deleted) => void told.push(deleted) });
      await live(store);
      await deleteDB(dbName);
      expect(told).toEqual([true]);
      await expect(store.append(claim, chunkOf(claim, 2, [delta("c")]))).rejects.toMatchObject({ code: "fenced" });
      expect(await store.head("t")).toBeUndefined();
      expect(await claimed(store, "t", "r")).toMatchObject({ runIndex: 0, epoch: 1 });
    });

    test("an open that an older version blocks is told as that, and what comes of it late blocks nobody (L10, L13)", async () => {
      const dbName = freshName();
      const deaf = await openDB(dbName, 1, { upgrade: (db) => createVersion1(db) });
      const store = opened(dbName, { clock: impatient, openTimeoutMs: 60_000 });
      await expect(store.head("t")).rejects.toMatchObject({ code: "storage-blocked", details: { dbName } });
      deaf.close();
      // It would wait for ever for a connection that nobody knows of.
      const newer = await openDB(dbName, 99);
      expect(newer.version).toBe(99);
      newer.close();
      await expect(store.head("t")).rejects.toMatchObject({ code: "outdated" });
    });

    test("storage that is switched off is told, and tried again at the next call (L10)", async () => {
      const store = opened();
      const { open } = IDBFactory.prototype;
      onTestFinished(() => {
        IDBFactory.prototype.open = open;
      });
      IDBFactory.prototype.open = () => {
        throw new DOMException("The operation is insecure.", "SecurityError");
      };
      await expect(store.head("t")).rejects.toMatchObject({
        code: "storage-unavailable",
        details: { cause: /SecurityError/ },
      });
      IDBFactory.prototype.open = open;
      expect(await store.head("t")).toBeUndefined();
    });

    test("a connection that fell and cannot be opened again is told as lost (L10)", async () => {
      const store = opened();
      await store.head("t");
      await apart();
      const { open } = IDBFactory.prototype;
      onTestFinished(() => {
        IDBFactory.prototype.open = open;
      });
      watchTransactions(() => {
        IDBFactory.prototype.open = () => {
          throw new DOMException("Internal error opening backing store", "UnknownError");
        };
        throw new DOMException("Connection lost", "UnknownError");
      });
      const lost = { code: "storage-lost", details: { cause: "UnknownError: Connection lost" } };
      await expect(store.head("t")).rejects.toMatchObject(lost);
    });

    test("an upgrade that fails leaves the database as it was (L10)", async () => {
      const dbName = freshName();
      const old = await openDB(dbName, 1, { upgrade: (db) => createVersion1(db) });
      await old.put("meta", 7, "epoch");
      old.close();
      const store = opened(dbName);
      const { createIndex } = IDBObjectStore.prototype;
      onTestFinished(() => {
        IDBObjectStore.prototype.createIndex = createIndex;
      });
      IDBObjectStore.prototype.createIndex = () => {
        throw new DOMException("The disk is full", "QuotaExceededError");
      };
      await expect(store.head("t")).rejects.toMatchObject({ code: "storage-unavailable" });
      const kept = await openDB(dbName);
      expect([kept.version, await kept.get("meta", "epoch")]).toEqual([1, 7]);
      kept.close();
      IDBObjectStore.prototype.createIndex = createIndex;
      expect(await claimed(store, "t", "r")).toMatchObject({ epoch: 8 });
    });

    test("a database that is somebody else's is refused and left as it is (L10)", async () => {
      const dbName = freshName();
      const theirs = await openDB(dbName, 2, {
        upgrade: (db) => void db.createObjectStore("theirs").put("kept", "key"),
      });
      theirs.close();
      const store = opened(dbName);
      for (let times = 0; times < 2; times++) {
        await expect(store.head("t")).rejects.toMatchObject({
          code: "storage-unavailable",
          details: { cause: /no store heads, threads/ },
        });
      }
      const again = await openDB(dbName);
      expect([await again.get("theirs", "key"), [...again.objectStoreNames]]).toEqual(["kept", ["theirs"]]);
      again.close();
    });
  });
}
