/**
 * Checkpoint stores: graph agents resume where they stopped.
 *
 * @module ag-ui-local-runtime/checkpoint
 */
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
export type { Clock } from "../platform/clock.js";
export type { MakeId } from "../platform/ids.js";
export type { PayloadCodec, PayloadPlace } from "../storage/codec.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "../run/errors.js";
