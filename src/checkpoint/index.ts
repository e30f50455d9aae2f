/** Checkpoint stores: for graph agents that go on where they were. */
export type {
  Checkpoint,
  CheckpointDiagnostics,
  CheckpointMetadata,
  CheckpointOrigin,
  CheckpointState,
  EffectClass,
} from "./checkpoint.js";
export type {
  CheckpointListQuery,
  CheckpointPatch,
  CheckpointPlace,
  CheckpointStore,
  LineageStep,
  LocalCheckpointStore,
  PruneQuery,
  SaveIfResult,
} from "./checkpoint-store.js";
export {
  IndexedDBCheckpointStore,
  type IndexedDBCheckpointStoreOptions,
} from "./indexeddb/indexeddb-checkpoint-store.js";
export { InMemoryCheckpointStore, type InMemoryCheckpointStoreOptions } from "./memory/in-memory-checkpoint-store.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "../run/errors.js";
