import "fake-indexeddb/auto";
import { InMemoryCheckpointStore } from "../../../src/checkpoint/memory/in-memory-checkpoint-store.js";
import { describeCheckpointStore } from "./checkpoint-store.suite.js";
import { openedStore } from "./kit.js";

describeCheckpointStore("InMemoryCheckpointStore", () => new InMemoryCheckpointStore());
describeCheckpointStore("IndexedDBCheckpointStore, on fake-indexeddb", () => openedStore());
