import { describe, expect, onTestFinished, test } from "vitest";
import { watchTransactions } from "./idb-spy.js";
import { apart, chunkOf, delta } from "./kit.js";
import { opened } from "./stores.js";
import { claim, live } from "./write-cases.js";

/** How reads share transactions, on whichever IndexedDB is there. */
export function describeSharedReads(name: string): void {
  describe(name, () => {
    test("reads that follow one another at once are made in one transaction, those of another task in the next", async () => {
      const store = opened();
      await live(store);
      await apart();
      const seen = watchTransactions();
      for (let n = 0; n < 5; n++) expect(await store.head("t")).toBeDefined();
      expect(await store.run("t", 1)).toBeDefined();
      expect(seen).toHaveLength(1);
      await apart();
      expect(await store.head("t")).toBeDefined();
      expect(seen).toHaveLength(2);
    });

    test("a write waits for a few of them at most (L15)", async () => {
      const store = opened();
      await live(store);
      await apart();
      let reads = 0;
      const write = { isOver: false };
      await store.head("t");
      const written = store.append(claim, chunkOf(claim, 2, [delta("c")])).then(() => (write.isOver = true));
      while (!write.isOver) {
        await store.head("t");
        reads++;
      }
      await written;
      expect(reads).toBeLessThan(100);
    });

    test("a read after a write has it", async () => {
      const store = opened();
      expect(await store.head("t")).toBeUndefined();
      await live(store);
      expect(await store.head("t")).toBeDefined();
    });

    test("the failed request of one read fails no other, and costs no connection", async () => {
      const store = opened();
      await live(store);
      await apart();
      const { get } = IDBObjectStore.prototype;
      const { open } = IDBFactory.prototype;
      onTestFinished(() => {
        IDBObjectStore.prototype.get = get;
        IDBFactory.prototype.open = open;
      });
      let opens = 0;
      IDBFactory.prototype.open = function (...args) {
        opens++;
        return open.apply(this, args);
      };
      let isFirst = true;
      IDBObjectStore.prototype.get = function (key) {
        const request = get.call(this, key);
        if (this.name === "runs" && isFirst) {
          isFirst = false;
          queueMicrotask(() => this.transaction.abort());
        }
        return request;
      };
      const [head, run, again] = await Promise.all([store.head("t"), store.run("t", 1), store.head("t")]);
      expect(head).toEqual(again);
      expect(run).toBeDefined();
      expect(isFirst).toBe(false);
      expect(opens).toBe(0);
    });
  });
}
