import { onTestFinished } from "vitest";
import { indexedDBRunStore } from "../../src/storage/indexeddb/indexeddb-run-store.js";
import { describeRunStore } from "../unit/storage/run-store.suite.js";

let names = 0;

describeRunStore("IndexedDB run store, in the browser", () => {
  const dbName = `store-${++names}-${crypto.randomUUID()}`;
  const store = indexedDBRunStore({ dbName });
  onTestFinished(async () => {
    await store.close();
    indexedDB.deleteDatabase(dbName);
  });
  return store;
});
