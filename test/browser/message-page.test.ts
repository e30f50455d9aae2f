import { indexedDBRunStore } from "../../src/storage/indexeddb/indexeddb-run-store.js";
import { describeMessagePages } from "../unit/storage/message-page.suite.js";
import { freshName } from "../unit/storage/stores.js";

describeMessagePages(
  "pages of messages in IndexedDB, in the browser",
  () => indexedDBRunStore({ dbName: freshName() }),
  10,
);
