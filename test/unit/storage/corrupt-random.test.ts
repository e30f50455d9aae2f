import "fake-indexeddb/auto";
import fc from "fast-check";
import { openDB, type IDBPDatabase } from "idb";
import { expect, test } from "vitest";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import type { RuntimeSchema } from "../../../src/storage/indexeddb/schema.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { times } from "../property.js";
import { freshDb } from "../runner/kit.js";
import { change, changed, type Change } from "./corrupt-changes.js";
import { cutOff, listsOf, outcomeOf, outcomesOf, varied, writesTo, type Outcome } from "./corrupt-kit.js";
import { dumpOf, restore, type Dump, type Stored } from "./raw.js";

/** The thread whose records are changed, and threads that nothing may happen to. */
const HURT = "b-hurt";
const OTHERS = ["a-cut", "c-varied"];
const LAST = 5;

/** A database with these threads, made once. */
async function template(): Promise<Dump> {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName });
  await cutOff(store, OTHERS[0]!);
  await varied(store, HURT);
  await varied(store, OTHERS[1]!);
  await store.close();
  const db = await openDB<RuntimeSchema>(dbName);
  const dump = await dumpOf(db);
  db.close();
  return dump;
}

const isOf = (threadId: string, { key }: Stored): boolean =>
  key === threadId || (Array.isArray(key) && key[0] === threadId) || key === `garbage:${threadId}`;

const recordsOf = (dump: Dump, threadId: string): Dump =>
  Object.fromEntries(
    Object.entries(dump).map(([store, records]) => [store, records.filter((record) => isOf(threadId, record))]),
  );

/** @returns false where the database refuses the record */
async function write(db: IDBPDatabase<RuntimeSchema>, store: string, record: Stored, how: Change): Promise<boolean> {
  // Any store, with whatever a fault puts into it.
  const tx = (db as unknown as IDBPDatabase).transaction(store, "readwrite");
  tx.done.catch(() => undefined);
  try {
    if (how.to === "gone") await tx.store.delete(record.key);
    else {
      const next = changed(record, how);
      await tx.store.put(next.value, tx.store.keyPath === null ? next.key : undefined);
    }
    await tx.done;
    return true;
  } catch {
    return false;
  }
}

const isTyped = (outcome: Outcome): boolean => "value" in outcome || outcome.code === "corrupt-record";

const base = await template();
const owned = recordsOf(base, HURT);
const places = Object.entries(owned)
  .flatMap(([store, records]) => records.map((record) => ({ store, record })))
  .concat({
    store: "meta",
    record: { key: `garbage:${HURT}`, value: { epoch: 1, below: 2, chunksBelow: 3, runs: [[1, 1]] } },
  })
  .concat({ store: "meta", record: base["meta"]!.find(({ key }) => key === "epoch")! });

async function opened(): Promise<{ store: RunStore; db: IDBPDatabase<RuntimeSchema>; close: () => Promise<void> }> {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName });
  await store.head("none");
  const db = await openDB<RuntimeSchema>(dbName);
  // A fault knows of no schema.
  await restore(db as unknown as IDBPDatabase, base);
  return {
    store,
    db,
    close: async () => {
      db.close();
      await store.close();
      indexedDB.deleteDatabase(dbName);
    },
  };
}

test("whatever is done to records of a thread, each call on it gives a value or corrupt-record, and other threads are as before (L10, L13)", async () => {
  const whole = await opened();
  const others = async (store: RunStore): Promise<unknown> =>
    Promise.all(OTHERS.map((threadId) => outcomesOf(store, threadId, LAST)));
  const wanted = await others(whole.store);
  await whole.close();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...places), change), { minLength: 1, maxLength: 3 }),
      async (changes) => {
        const { store, db, close } = await opened();
        for (const [{ store: name, record }, how] of changes) await write(db, name, record, how);
        const hurt = await dumpOf(db);
        const theirs = OTHERS.map((threadId) => recordsOf(hurt, threadId));

        const reads = await outcomesOf(store, HURT, LAST);
        for (const [name, read] of Object.entries(reads))
          expect(isTyped(read), `${name}: ${JSON.stringify(read)}`).toBe(true);
        // One thread's trouble hides no other from the lists.
        const lists = (await listsOf(store)) as [
          { threadId: string }[],
          { threadId: string }[],
          { threadId: string }[],
          string[],
        ];
        const listed = lists
          .slice(0, 3)
          .map((list) => (list as { threadId: string }[]).map(({ threadId }) => threadId));
        expect(listed[0]).toEqual(expect.arrayContaining(OTHERS));
        expect(listed[1]).toContain(OTHERS[1]);
        expect(listed[2]).toEqual(expect.arrayContaining(OTHERS));
        // Nothing is mended, and nothing spoilt, by a look at it.
        expect(await dumpOf(db)).toEqual(hurt);

        const writes = await writesTo(store, HURT);
        for (const [n, outcome] of writes.entries())
          expect(
            isTyped(outcome) || ("code" in outcome && outcome.code === "fenced"),
            `write ${n}: ${JSON.stringify(outcome)}`,
          ).toBe(true);
        const after = await dumpOf(db);
        expect(OTHERS.map((threadId) => recordsOf(after, threadId))).toEqual(theirs);
        expect(await others(store)).toEqual(wanted);
        // And other threads go on.
        expect(await outcomeOf(store.deleteThread(OTHERS[0]!))).toEqual({ value: true });
        await close();
      },
    ),
    times(50),
  );
});
