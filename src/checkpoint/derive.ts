import { sizeOf } from "../run/size.js";
import type { Checkpoint, CheckpointMetadata, CheckpointOrigin, CheckpointState } from "./checkpoint.js";
import type { CheckpointPatch, LineageStep } from "./checkpoint-store.js";
import { hasFields } from "./checks.js";

/** Metadata without the place that the store gives. */
export type Listed = Omit<CheckpointMetadata, "turn">;

/** Picks the known fields. They are not encrypted. */
export const listed = ({ forkedFrom, ...of }: Listed): Listed => ({
  id: of.id,
  runId: of.runId,
  graphId: of.graphId,
  nodeId: of.nodeId,
  timestamp: of.timestamp,
  stateSize: of.stateSize,
  hasMemorySnapshot: of.hasMemorySnapshot,
  ...(forkedFrom && { forkedFrom: { checkpointId: forkedFrom.checkpointId, runId: forkedFrom.runId } }),
});

export const metadataOf = (checkpoint: Checkpoint): Listed =>
  listed({
    ...checkpoint,
    stateSize: sizeOf(checkpoint.state),
    hasMemorySnapshot: checkpoint.memorySnapshot !== undefined,
  });

/** Whether a checkpoint is saved, see {@link LocalCheckpointStore.saveIf}. @param latest the run's newest */
export const mayFollow = (
  { timestamp }: Checkpoint,
  latest: CheckpointMetadata | null,
  expectedLatestId: string | null,
): boolean => (latest?.id ?? null) === expectedLatestId && timestamp >= (latest?.timestamp ?? -Infinity);

/**
 * A checkpoint and its ancestry, see {@link LocalCheckpointStore.lineage}.
 *
 * @param storedMetadata null: there is none of this id
 * @param originOf undefined: the run is no fork
 */
export async function lineageOf(
  id: string,
  storedMetadata: (id: string) => Promise<CheckpointMetadata | null> | CheckpointMetadata | null,
  originOf: (runId: string) => Promise<CheckpointOrigin | undefined> | CheckpointOrigin | undefined,
): Promise<LineageStep[]> {
  const steps: LineageStep[] = [];
  const first = await storedMetadata(id);
  let next = first === null ? undefined : { checkpointId: id, runId: first.runId };
  // `forkedFrom` comes from callers and may be cyclic.
  const seen = new Set<string>();
  while (next !== undefined && !seen.has(next.runId)) {
    seen.add(next.runId);
    steps.push({ ...next, metadata: await storedMetadata(next.checkpointId) });
    next = await originOf(next.runId);
  }
  return steps;
}

// A spread defines keys instead of setting them, so "__proto__" is an ordinary key.
const merged = (own: unknown, patch: unknown): unknown =>
  hasFields(own) && hasFields(patch) ? { ...own, ...patch } : patch;

/** The state with the partitions that a patch names; see {@link CheckpointStore.fork}. */
function patched(state: CheckpointState, patch: CheckpointPatch): CheckpointState {
  const result: Record<string, unknown> = { ...state };
  for (const partition of ["input", "scratch", "artifacts", "diagnostics"] as const) {
    if (patch[partition] !== undefined) result[partition] = merged(state[partition], patch[partition]);
  }
  // The diagnostics' shape is not checked, as in `save`.
  return result as unknown as CheckpointState;
}

/**
 * The first checkpoint of a forked run.
 *
 * @param as its new identity
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
