import { onTestFinished } from "vitest";
import { IndexedDBCheckpointStore } from "../../../src/checkpoint/indexeddb/indexeddb-checkpoint-store.js";
import type { IndexedDBCheckpointStoreOptions } from "../../../src/checkpoint/indexeddb/indexeddb-checkpoint-store.js";
import type { Checkpoint, CheckpointDiagnostics } from "../../../src/checkpoint/checkpoint.js";

export const diagnostics = (): CheckpointDiagnostics => ({
  totalTokensUsed: 0,
  totalDurationMs: 0,
  nodeTimings: {},
  discoveryResults: {},
  guardrailResults: {},
  checkpointsSaved: 0,
  memoryReads: 0,
  memoryWrites: 0,
});

/** A checkpoint of node `node` in run `run` of graph `graph`, with a state that says its id. */
export const checkpoint = (id: string, more: Partial<Checkpoint> = {}): Checkpoint => ({
  id,
  graphId: "graph",
  runId: "run",
  nodeId: "node",
  timestamp: 1_000,
  state: { input: { topic: "tides" }, scratch: { at: id }, artifacts: {}, diagnostics: diagnostics() },
  nodeResults: { node: { effectClass: "pure", output: id, durationMs: 1 } },
  visitedNodes: ["node"],
  skippedNodes: [],
  pendingEdges: ["edge"],
  ...more,
});

export const freshName = (): string => `checkpoints-${crypto.randomUUID()}`;

/** A store that is closed, and its database deleted, when the test ends. */
export function openedStore(
  dbName = freshName(),
  options: IndexedDBCheckpointStoreOptions = {},
): IndexedDBCheckpointStore {
  const store = new IndexedDBCheckpointStore({ ...options, dbName });
  onTestFinished(async () => {
    await store.close();
    indexedDB.deleteDatabase(`${dbName}.checkpoints`);
  });
  return store;
}
