import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { IndexedDBSaver } from "../../../src/langgraph/indexeddb-saver.js";
import { langGraphDbName } from "../../../src/platform/names.js";

/**
 * LangGraph's own laws of a saver, all of them. They are written for vitest's global functions, which only they get here.
 */
Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it });
const { deltaChannelHistoryTests, validate } = await import("@langchain/langgraph-checkpoint-validation");

export function describeValidation(checkpointerName: string): void {
  const names = new Map<IndexedDBSaver, string>();
  const initializer = {
    checkpointerName,
    createCheckpointer() {
      const dbName = `validation-${crypto.randomUUID()}`;
      const saver = new IndexedDBSaver({ dbName });
      names.set(saver, dbName);
      return saver;
    },
    async destroyCheckpointer(saver: IndexedDBSaver) {
      await saver.close();
      indexedDB.deleteDatabase(langGraphDbName(names.get(saver)!));
    },
  };
  validate(initializer);
  // Not among those that `validate` runs: it is asked of whoever finds that history in a way of its own.
  deltaChannelHistoryTests(initializer);
}
