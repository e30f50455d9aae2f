import { InMemoryCheckpointStore } from "ag-ui-local-runtime/checkpoint";
import { describeCheckpointStore } from "../../unit/checkpoint/checkpoint-store.suite.js";
import { describeCheckpointFaults } from "../../unit/checkpoint/indexeddb-checkpoint-store.suite.js";
import { openedStore } from "../../unit/checkpoint/kit.js";
import { runTests, type Outcome } from "./in-page-tests.js";

describeCheckpointStore("InMemoryCheckpointStore", () => new InMemoryCheckpointStore());
describeCheckpointStore("IndexedDBCheckpointStore", () => openedStore());
describeCheckpointFaults("IndexedDBCheckpointStore, in IndexedDB");

declare global {
  interface Window {
    outcome: Promise<Outcome>;
  }
}

window.outcome = runTests();
