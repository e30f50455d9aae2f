import "fake-indexeddb/auto";
import { expect, onTestFinished, test } from "vitest";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { freshDb } from "../runner/kit.js";
import { failing, fillDiskFor, watchTransactions, type Full } from "./idb-spy.js";
import { dumpOf, rawOf } from "./raw.js";
import { WRITES } from "./write-cases.js";

/** What a write that is done in several transactions has committed before the one that fails. */
const IN_PIECES = ["a piece of a deletion", "the end of a deletion"];

const FULL: readonly Full[] = ["write", "commit"];

for (const { name, stores, before, write, inVain } of WRITES) {
  if (inVain) continue;
  test.each(FULL)(
    `${name} on a full disk, told at its %s, is an error and leaves nothing half written (L10)`,
    async (when) => {
      const dbName = freshDb();
      const store = indexedDBRunStore({ dbName });
      onTestFinished(() => store.close());
      await before(store);
      const db = await rawOf(dbName);
      const log = await dumpOf(db);
      const disk = fillDiskFor(stores, when);
      const full = { code: "quota-exceeded", details: { dbName, cause: /^QuotaExceededError: / } };
      await expect(write(store)).rejects.toMatchObject(full);
      expect(disk.hit()).toBe(true);
      if (!IN_PIECES.includes(name)) expect(await dumpOf(db)).toEqual(log);
      // Reads go on.
      const head = await store.head("t");
      expect(head !== undefined).toBe(log["heads"]?.length === 1);
      expect(await store.liveHeads()).toHaveLength(head?.live === undefined ? 0 : 1);
    },
  );
}

test.each([
  ["an empty message", new DOMException("", "QuotaExceededError")],
  ["null fields", { name: "QuotaExceededError", message: null, quota: null, requested: null }],
])("a full disk that is told of with %s is known by its name (L10)", async (_what, error) => {
  const store = indexedDBRunStore({ dbName: freshDb() });
  onTestFinished(() => store.close());
  watchTransactions(failing(({ mode }) => mode === "readwrite", 1, error));
  await expect(store.requestStop("t", "r", 1)).rejects.toMatchObject({ code: "quota-exceeded" });
  expect(await store.requestStop("t", "r", 1)).toBeUndefined();
});
