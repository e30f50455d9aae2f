import "fake-indexeddb/auto";
import { InMemoryCheckpointStore } from "../../../src/checkpoint/memory/in-memory-checkpoint-store.js";
import { encryption } from "../encryption/fast-key.js";
import { describeCheckpointStore } from "./checkpoint-store.suite.js";
import { freshName, openedStore } from "./kit.js";

describeCheckpointStore("InMemoryCheckpointStore", () => new InMemoryCheckpointStore());
describeCheckpointStore("IndexedDBCheckpointStore, on fake-indexeddb", () => openedStore());
describeCheckpointStore("IndexedDBCheckpointStore, encrypted, on fake-indexeddb", () =>
  openedStore(freshName(), { encryption }),
);
