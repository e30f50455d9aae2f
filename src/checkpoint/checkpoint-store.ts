import type { Checkpoint, CheckpointMetadata, CheckpointOrigin, CheckpointState } from "./checkpoint.js";

/**
 * Keeps checkpoints: the contract of AgentOS' `ICheckpointStore`, compatible both ways.
 *
 * - The newest of several checkpoints must be that of the highest `timestamp`; of equal ones, the one saved last.
 * - Input must be copied at the call, and results must be copies: callers cannot change what is stored.
 * - A write must be seen whole or not at all, by every reader, and after a crash. What it acknowledged must be durable
 *   where the store is.
 * - What cannot be kept (a value that cannot be cloned, a field of another shape) must be refused with RunnerError
 *   `invalid-input`, whose `details.field` names it, before anything is written.
 * - A query's cost must depend on its result, not on what is stored; `list` must read no states.
 *
 * Storage failures are RunnerErrors with the codes of storage; reading an invalid record gives
 * `corrupt-record` and leaves it as it is.
 */
export interface CheckpointStore {
  /** One with the same id is overwritten, whatever its run. */
  save(checkpoint: Checkpoint): Promise<void>;
  get(checkpointId: string): Promise<Checkpoint | null>;
  /** The newest of the run, or of this node in it. */
  load(runId: string, nodeId?: string): Promise<Checkpoint | null>;
  /** The newest of the run. */
  latest(runId: string): Promise<Checkpoint | null>;
  /** Those of a graph, newest first. */
  list(graphId: string, query?: CheckpointListQuery): Promise<CheckpointMetadata[]>;
  /** A missing checkpoint is no error. */
  delete(checkpointId: string): Promise<void>;
  /**
   * Copies a checkpoint into a new run as its first, with a new id, runId and timestamp.
   *
   * @param patchState replaces the named keys of each named partition whole (null and arrays included) and keeps the
   *   others. A partition that is not an object on either side is replaced. Other fields are ignored.
   * @returns the new runId
   * @throws RunnerError `unknown-checkpoint`
   */
  fork(checkpointId: string, patchState?: CheckpointPatch): Promise<string>;
}

/** Extends the contract by what a store in a browser needs. */
export interface LocalCheckpointStore extends CheckpointStore {
  /**
   * Compare-and-save in one transaction: saves only if the run's newest checkpoint is still the expected one, so one of
   * two tabs that continue from one checkpoint gets a conflict. The saved one is the newest only if its timestamp makes
   * it so.
   *
   * @param expectedLatestId null: the run has none
   */
  saveIf(checkpoint: Checkpoint, expectedLatestId: string | null): Promise<SaveIfResult>;
  /**
   * Deletes the run's checkpoints, oldest first and in several transactions: an interrupted call leaves the newest.
   *
   * @returns how many
   */
  deleteRun(runId: string): Promise<number>;
  /**
   * Deletes old checkpoints, run by run and in several transactions, as {@link deleteRun} does.
   *
   * @returns how many
   */
  prune(query: PruneQuery): Promise<number>;
  /**
   * The checkpoint and its fork ancestry, nearest first. A run's fork source is known as long as it has a checkpoint.
   *
   * @returns empty if there is no such checkpoint
   */
  lineage(checkpointId: string): Promise<LineageStep[]>;
  /** Later calls fail with RunnerError `closed`. */
  close(): Promise<void>;
}

/** Which checkpoints of a graph. */
export interface CheckpointListQuery {
  readonly runId?: string | undefined;
  /** Maximum count; 0 is none. Absent: all. */
  readonly limit?: number | undefined;
  /** Only older ones than this, the last of the previous page. It may have been deleted. */
  readonly before?: CheckpointPlace | undefined;
  /**
   * Only newer ones than this: the first one of the page after. With a `limit`, and no `before`, those next to it; else
   * the newest.
   */
  readonly after?: CheckpointPlace | undefined;
}

/** A place in the order of checkpoints; every CheckpointMetadata is one. Without `turn`: all of that `timestamp`. */
export interface CheckpointPlace {
  readonly timestamp: number;
  readonly turn?: number | undefined;
}

/** AgentOS' `Partial<GraphState>` is one. */
export type CheckpointPatch = { readonly [Partition in keyof CheckpointState]?: unknown };

/** Whether it was saved, and which checkpoint is the newest. */
export type SaveIfResult =
  /** `latest` is the run's newest now. */
  | { readonly is: "saved"; readonly latest: CheckpointMetadata }
  /** Nothing was written: `latest` is the run's newest, or null where it has none. */
  | { readonly is: "conflict"; readonly latest: CheckpointMetadata | null };

/** Deletes what meets all given conditions; `keep` or `olderThan` must be given. */
export interface PruneQuery {
  /** How many of each run stay, newest first. */
  readonly keep?: number | undefined;
  /** Those from this time on stay, in ms since the Unix epoch. */
  readonly olderThan?: number | undefined;
  /** Only of this run. */
  readonly runId?: string | undefined;
  /** Whether a run's newest may be deleted too. Default: it stays. */
  readonly evenLast?: boolean | undefined;
}

export interface LineageStep extends CheckpointOrigin {
  /** Null where the checkpoint was deleted. */
  readonly metadata: CheckpointMetadata | null;
}
