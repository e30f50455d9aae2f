import { IndexedDBCheckpointStore } from "../../src/checkpoint/indexeddb/indexeddb-checkpoint-store.js";
import { freshName } from "../unit/checkpoint/kit.js";
import { testRandomCheckpoints } from "../unit/checkpoint/random-checkpoints.js";

testRandomCheckpoints("IndexedDBCheckpointStore, in the browser", 50, (parts) => {
  const dbName = freshName();
  const store = new IndexedDBCheckpointStore({ ...parts, dbName });
  return {
    store,
    async end() {
      await store.close();
      indexedDB.deleteDatabase(`${dbName}.checkpoints`);
    },
  };
});
