import { InMemoryCheckpointStore } from "../../src/checkpoint/memory/in-memory-checkpoint-store.js";
import { describeCheckpointStore } from "../unit/checkpoint/checkpoint-store.suite.js";
import { describeCheckpointFaults } from "../unit/checkpoint/indexeddb-checkpoint-store.suite.js";
import { openedStore } from "../unit/checkpoint/kit.js";

describeCheckpointStore("InMemoryCheckpointStore, in the browser", () => new InMemoryCheckpointStore());
describeCheckpointStore("IndexedDBCheckpointStore, in the browser", () => openedStore());
describeCheckpointFaults("IndexedDBCheckpointStore, in the browser");
