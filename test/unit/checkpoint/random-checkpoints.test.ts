import "fake-indexeddb/auto";
import { IndexedDBCheckpointStore } from "../../../src/checkpoint/indexeddb/indexeddb-checkpoint-store.js";
import { InMemoryCheckpointStore } from "../../../src/checkpoint/memory/in-memory-checkpoint-store.js";
import { freshName } from "./kit.js";
import { testRandomCheckpoints } from "./random-checkpoints.js";

testRandomCheckpoints("InMemoryCheckpointStore", 300, (parts) => {
  const store = new InMemoryCheckpointStore(parts);
  return { store, end: () => store.close() };
});

testRandomCheckpoints("IndexedDBCheckpointStore, on fake-indexeddb", 150, (parts) => {
  const store = new IndexedDBCheckpointStore({ ...parts, dbName: freshName() });
  return { store, end: () => store.close() };
});
