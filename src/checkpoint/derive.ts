import { sizeOf } from "../run/size.js";
import type { Checkpoint, CheckpointMetadata, CheckpointState } from "./checkpoint.js";
import type { CheckpointPatch } from "./checkpoint-store.js";

/** What is listed of a checkpoint that is saved now. */
export const metadataOf = (checkpoint: Checkpoint, turn: number): CheckpointMetadata => ({
  id: checkpoint.id,
  runId: checkpoint.runId,
  graphId: checkpoint.graphId,
  nodeId: checkpoint.nodeId,
  timestamp: checkpoint.timestamp,
  stateSize: sizeOf(checkpoint.state),
  hasMemorySnapshot: checkpoint.memorySnapshot !== undefined,
  turn,
  ...(checkpoint.forkedFrom !== undefined && { forkedFrom: checkpoint.forkedFrom }),
});

/** Of what comes out of `structuredClone`: no array, Map, Date or Blob. */
const hasKeys = (value: unknown): value is Record<string, unknown> =>
  Object.prototype.toString.call(value) === "[object Object]";

// A spread defines keys and sets none, so that "__proto__" is a key like others.
const merged = (own: unknown, patch: unknown): unknown =>
  hasKeys(own) && hasKeys(patch) ? { ...own, ...patch } : patch;

/** The state with the partitions that a patch names; see {@link CheckpointStore.fork}. */
function patched(state: CheckpointState, patch: CheckpointPatch): CheckpointState {
  const result: Record<string, unknown> = { ...state };
  for (const partition of ["input", "scratch", "artifacts", "diagnostics"] as const) {
    if (patch[partition] !== undefined) result[partition] = merged(state[partition], patch[partition]);
  }
  // What the diagnostics are is the caller's word, here as in `save`.
  return result as unknown as CheckpointState;
}

/**
 * The first checkpoint of a run that goes on from another run's.
 *
 * @param as what it is from now on
 */
export const forkOf = (
  source: Checkpoint,
  patch: CheckpointPatch,
  as: { readonly id: string; readonly runId: string; readonly timestamp: number },
): Checkpoint => ({
  ...source,
  ...as,
  state: patched(source.state, patch),
  forkedFrom: { checkpointId: source.id, runId: source.runId },
});
