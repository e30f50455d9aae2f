import { deleteDB, openDB } from "idb";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { checkpoint, openedStore } from "../checkpoint/kit.js";
import { checkpointOf, metadataOf, opened as openedSaver, threadConfig, valuesOf } from "../langgraph/kit.js";
import { placed } from "../storage/devices.suite.js";
import { claimed } from "../storage/kit.js";
import { freshName, opened } from "../storage/stores.js";
import { waiting } from "../storage/waiting.suite.js";
import { fastKey } from "./fast-key.js";

/*
 * A database that is deleted once something was encrypted for it, and before that is written: the work is repeated in a new
 * database of the same name.
 */

/** What comes after the next payload was encrypted, and before it is written. */
function onceSealed(meanwhile: () => Promise<unknown>): void {
  const spy = vi.spyOn(crypto.subtle, "encrypt");
  onTestFinished(() => spy.mockRestore());
  spy.mockImplementationOnce(async (...of) => {
    const sealed = await crypto.subtle.encrypt(...of);
    await meanwhile();
    return sealed;
  });
}

const lost = { code: "storage-lost", message: expect.stringContaining("deleted") };

const WRITES: readonly (readonly [string, (store: RunStore, threadId: string) => Promise<unknown>])[] = [
  ["the claim of a new thread", (store, threadId) => claimed(store, threadId, "r0", { title: "a title" })],
  ["a waiting run", (store, threadId) => store.addWaiting(waiting("w0", { threadId }), 10)],
  ["a run of another device", (store, threadId) => store.placeRun(placed("r0", { threadId, prevRunIndex: null }))],
  [
    "a thread whose runs are elsewhere",
    (store, threadId) => {
      const times = { createdAt: 1, updatedAt: 2 };
      return store.listAbsent!([{ threadId, title: "a title", archived: false, pinned: false, ...times }]);
    },
  ],
];

/** With the IndexedDB of this context. */
export function testReplacedDatabase(name: string): void {
  describe(name, () => {
    test.each(WRITES)(
      "%s that was encrypted for a deleted database is not written into the next one",
      async (_, write) => {
        const dbName = freshName();
        const encryption = new Encryption({ key: fastKey });
        const store = opened(dbName, { encryption });
        await write(store, "before");
        onceSealed(() => deleteDB(dbName));
        await expect(write(store, "during")).rejects.toMatchObject({ ...lost, details: { dbName } });
        await write(store, "after");
        await encryption.unlock(fastKey);
        expect(await encryption.state()).toBe("unlocked");
        expect(await store.threads({ archived: false, limit: 9 })).not.toContainEqual(
          expect.objectContaining({ threadId: "during" }),
        );
      },
    );

    test("nor where the next one has keys by then", async () => {
      const dbName = freshName();
      const encryption = new Encryption({ key: fastKey });
      const store = opened(dbName, { encryption });
      await claimed(store, "before", "r0");
      onceSealed(async () => {
        await deleteDB(dbName);
        await claimed(store, "meanwhile", "r0");
      });
      await expect(claimed(store, "during", "r0")).rejects.toMatchObject(lost);
      expect(await store.head("during")).toBeUndefined();
      expect(await store.input("meanwhile", 0)).toMatchObject({ messages: [{ content: "hi" }] });
    });

    test("where the connection was closed before the database was deleted, the next call has new keys", async () => {
      const dbName = freshName();
      const encryption = new Encryption({ key: fastKey });
      const store = opened(dbName, { encryption });
      await claimed(store, "before", "r0");
      const { close } = IDBDatabase.prototype;
      onTestFinished(() => {
        IDBDatabase.prototype.close = close;
      });
      const { transaction } = IDBDatabase.prototype;
      // A connection that fails is closed, and not told of a deletion any more.
      IDBDatabase.prototype.transaction = function () {
        IDBDatabase.prototype.transaction = transaction;
        throw new DOMException("Connection lost", "UnknownError");
      };
      let deleting: Promise<void> | undefined;
      IDBDatabase.prototype.close = function () {
        IDBDatabase.prototype.close = close;
        close.call(this);
        deleting = deleteDB(dbName);
      };
      await expect(claimed(store, "during", "r0")).rejects.toMatchObject(lost);
      await deleting;
      await claimed(store, "after", "r0");
    });

    test("a checkpoint that was encrypted for a deleted database is not written into the next one", async () => {
      const dbName = freshName();
      const encryption = new Encryption({ key: fastKey });
      const store = openedStore(dbName, { encryption });
      const save = {
        save: (id: string) => store.save(checkpoint(id)),
        saveIf: (id: string) => store.saveIf(checkpoint(id, { runId: id }), null),
      };
      await store.save(checkpoint("a"));
      for (const [call, given] of Object.entries(save)) {
        onceSealed(() => deleteDB(`${dbName}.checkpoints`));
        await expect(given(`${call} during`)).rejects.toMatchObject(lost);
        await given(`${call} after`);
        expect(await store.get(`${call} after`)).toMatchObject({ id: `${call} after` });
      }
      await encryption.unlock(fastKey);
      expect(await encryption.state()).toBe("unlocked");
    });

    test("nor what LangGraph's saver has encrypted", async () => {
      const dbName = freshName();
      const encryption = new Encryption({ key: fastKey });
      const saver = openedSaver(dbName, { encryption });
      const put = (threadId: string) =>
        saver.put(threadConfig(threadId), checkpointOf({ a: threadId }), metadataOf(0), { a: 1 });
      await put("before");
      onceSealed(() => deleteDB(`${dbName}.langgraph`));
      await expect(put("during")).rejects.toMatchObject(lost);
      const after = await put("after");
      expect(valuesOf(await saver.getTuple(after))).toEqual({ a: "after" });
      onceSealed(() => deleteDB(`${dbName}.langgraph`));
      await expect(saver.putWrites(after, [["a", "write"]], "task")).rejects.toMatchObject(lost);
      await put("again");
      const db = await openDB(`${dbName}.langgraph`);
      expect(await db.count("writes")).toBe(0);
      db.close();
      await encryption.unlock(fastKey);
    });
  });
}
