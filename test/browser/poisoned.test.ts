import { describe } from "vitest";
import { IndexedDBAgentRunner } from "../../src/runner/indexeddb-agent-runner.js";
import { indexedDBRunStore } from "../../src/storage/indexeddb/indexeddb-run-store.js";
import { poisonedSuite } from "../unit/runner/poisoned.suite.js";

describe("IndexedDBAgentRunner, in the browser", () => {
  // What a page can store, and no worker.
  poisonedSuite((finished) => {
    const dbName = `poisoned-${crypto.randomUUID()}`;
    const store = indexedDBRunStore({ dbName });
    finished(() => store.close());
    const open = () => {
      const runner = new IndexedDBAgentRunner({ dbName, stopGraceMs: 50 });
      finished(() => runner.destroy());
      return runner;
    };
    return { store, open };
  }, 2_500);
});
