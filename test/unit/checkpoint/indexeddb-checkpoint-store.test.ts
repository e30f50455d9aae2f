import "fake-indexeddb/auto";
import { describeCheckpointFaults } from "./indexeddb-checkpoint-store.suite.js";

describeCheckpointFaults("IndexedDBCheckpointStore, on fake-indexeddb");
