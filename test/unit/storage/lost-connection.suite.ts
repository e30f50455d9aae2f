import { describe, expect, onTestFinished, test } from "vitest";
import { watchTransactions } from "./idb-spy.js";
import { apart, chunkOf, delta, impatient } from "./kit.js";
import { rawOf } from "./raw.js";
import { eventsOf, freshName, opened } from "./stores.js";
import { claim, live } from "./write-cases.js";

/** What a store does when its connection falls or answers no more, on whichever IndexedDB is there. */
export function describeLostConnection(name: string): void {
  describe(name, () => {
    test.each([
      ["InvalidStateError", "The database connection is closing."],
      ["UnknownError", "Connection to Indexed Database server lost. Refresh the page to try again"],
      ["UnknownError", "Internal error."],
      ["AbortError", "The transaction was aborted."],
    ])(
      "after a %s (%s) the work is done on a new connection, at the second time no more (L10)",
      async (error, message) => {
        const dbName = freshName();
        const store = opened(dbName);
        await live(store);
        let left = 0;
        // What another test has left behind may still be at work.
        const seen = watchTransactions(({ db }) => {
          if (db === dbName && left-- > 0) throw new DOMException(message, error);
        });
        /** No read of the background is left that the next one could join. */
        const idle = async (): Promise<void> => {
          do await apart();
          while (seen.some(({ db, ended }) => db === dbName && !ended));
        };
        left = 1;
        expect(await store.append(claim, chunkOf(claim, 2, [delta("c")]))).toEqual({});
        await idle();
        left = 1;
        expect(await store.head("t")).toMatchObject({ epoch: 2 });
        for (const work of [() => store.head("t"), () => store.append(claim, chunkOf(claim, 3, [delta("d")]))]) {
          await idle();
          // What goes on in the background has its share.
          left = Infinity;
          const lost = { code: "storage-lost", details: { cause: `${error}: ${message}` } };
          await expect(work()).rejects.toMatchObject(lost);
          left = 0;
        }
        expect(await eventsOf(store, 1)).toEqual(["0 a", "1 b", "2 c"]);
      },
    );

    test("no handle that was lost is used again (L10)", async () => {
      const store = opened();
      await store.head("t");
      await apart();
      const lost = new Set<IDBDatabase>();
      const { transaction } = IDBDatabase.prototype;
      onTestFinished(() => {
        IDBDatabase.prototype.transaction = transaction;
      });
      let left = 2;
      IDBDatabase.prototype.transaction = function (...scope) {
        if (left-- > 0) lost.add(this);
        if (lost.has(this)) throw new DOMException("Connection lost", "UnknownError");
        return transaction.apply(this, scope);
      };
      await expect(store.head("t")).rejects.toMatchObject({ code: "storage-lost" });
      expect(lost.size).toBe(2);
      expect(await store.head("t")).toBeUndefined();
      expect(left).toBe(-1);
    });

    /** Another context holds the stores in a transaction that does not end. */
    async function held(dbName: string, stores: ("heads" | "chunks")[]): Promise<() => Promise<void>> {
      const db = await rawOf(dbName);
      const tx = db.transaction(stores, "readwrite");
      const over = new AbortController();
      const holding = (async () => {
        while (!over.signal.aborted) await tx.objectStore(stores[0]!).count();
        await tx.done;
      })();
      return () => {
        over.abort();
        return holding;
      };
    }

    test("a write that the database never gets to is told in time, and takes no effect later (L13)", async () => {
      const dbName = freshName();
      const patient = opened(dbName);
      await live(patient);
      const store = opened(dbName, { clock: impatient, openTimeoutMs: 1_000_000 });
      await store.head("t");
      const release = await held(dbName, ["heads"]);
      const late = store.append(claim, chunkOf(claim, 2, [delta("late")]));
      await expect(late).rejects.toMatchObject({ code: "storage-lost", details: { cause: /TimeoutError/ } });
      await release();
      expect(await eventsOf(patient, 1)).toEqual(["0 a", "1 b"]);
      expect(await store.append(claim, chunkOf(claim, 2, [delta("c")]))).toEqual({});
    });

    test("a read that is never answered is told in time (L13)", async () => {
      const dbName = freshName();
      const store = opened(dbName, { clock: impatient, openTimeoutMs: 1_000_000 });
      await store.head("t");
      const release = await held(dbName, ["heads"]);
      await expect(store.head("t")).rejects.toMatchObject({ code: "storage-lost", details: { dbName } });
      await release();
      expect(await store.head("t")).toBeUndefined();
    });
  });
}
