import type { Checkpoint, CheckpointMetadata, CheckpointOrigin, CheckpointState } from "./checkpoint.js";

/**
 * Keeps checkpoints: the contract of AgentOS' `ICheckpointStore`, compatible both ways.
 *
 * - The newest of several checkpoints must be the one with the highest `timestamp`; if equal, the one saved last.
 * - Input must be copied at the call, and results must be copies: callers cannot change what is stored.
 * - A write must be atomic for every reader, and after a crash. If the store is durable, acknowledged writes must be
 *   durable.
 * - Values that cannot be stored (not cloneable, a field of the wrong shape) must be refused with RunnerError
 *   `invalid-input`, whose `details.field` names it, before anything is written.
 * - A query's cost must depend on its result, not on what is stored; `list` must read no states.
 *
 * Storage failures are RunnerErrors with the codes of storage; reading an invalid record gives `corrupt-record` and does
 * not change it.
 */
export interface CheckpointStore {
  /** Overwrites a checkpoint with the same id, in any run. */
  save(checkpoint: Checkpoint): Promise<void>;
  get(checkpointId: string): Promise<Checkpoint | null>;
  /** The newest checkpoint of the run, or of this node in it. */
  load(runId: string, nodeId?: string): Promise<Checkpoint | null>;
  /** The newest checkpoint of the run. */
  latest(runId: string): Promise<Checkpoint | null>;
  /** The checkpoints of a graph, newest first. */
  list(graphId: string, query?: CheckpointListQuery): Promise<CheckpointMetadata[]>;
  /** A missing checkpoint is not an error. */
  delete(checkpointId: string): Promise<void>;
  /**
   * Copies a checkpoint into a new run as its first, with a new id, runId and timestamp.
   *
   * @param patchState replaces the named keys of each named partition completely (null and arrays included) and keeps its
   *   other keys. A partition that is not an object on either side is replaced. Other fields are ignored.
   * @returns the new runId
   * @throws RunnerError `unknown-checkpoint`
   */
  fork(checkpointId: string, patchState?: CheckpointPatch): Promise<string>;
}

/** Extends the contract with the needs of a store in a browser. */
export interface LocalCheckpointStore extends CheckpointStore {
  /**
   * Compare-and-save in one transaction: saves only if the run's newest checkpoint is still the expected one, and this one
   * becomes the newest. So if two tabs continue from one checkpoint, one gets a conflict. Where a clock was set back, give the
   * checkpoint the `timestamp` of the expected one: of equal ones the one saved last is the newest.
   *
   * @param expectedLatestId null: the run has none
   */
  saveIf(checkpoint: Checkpoint, expectedLatestId: string | null): Promise<SaveIfResult>;
  /**
   * Deletes the run's checkpoints, oldest first and in several transactions: an interrupted call leaves the newest ones.
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
   * The checkpoint and its fork ancestry, nearest first. A run's fork source is known while the run has a checkpoint.
   *
   * @returns empty if there is no such checkpoint
   */
  lineage(checkpointId: string): Promise<LineageStep[]>;
  /** Later calls fail with RunnerError `closed`. */
  close(): Promise<void>;
}

/** Selects checkpoints of a graph. */
export interface CheckpointListQuery {
  readonly runId?: string | undefined;
  /** Maximum count; 0: none. Absent: all. */
  readonly limit?: number | undefined;
  /** Only checkpoints older than this one, the last of the previous page. It may have been deleted. */
  readonly before?: CheckpointPlace | undefined;
  /**
   * Only checkpoints newer than this one, the first of the following page. With a `limit` and no `before`, the nearest
   * ones; otherwise the newest.
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

/** Whether the checkpoint was saved, and which one is the newest. */
export type SaveIfResult =
  /** `latest` is now the run's newest: this one, unless somebody has saved another one since. */
  | { readonly is: "saved"; readonly latest: CheckpointMetadata }
  /** Nothing was written: `latest`, the run's newest (null: it has none), is another one, or has a later timestamp. */
  | { readonly is: "conflict"; readonly latest: CheckpointMetadata | null };

/** Deletes the checkpoints that meet all given conditions; `keep` or `olderThan` is required. */
export interface PruneQuery {
  /** How many checkpoints of each run are kept, newest first. */
  readonly keep?: number | undefined;
  /** Checkpoints from this time on are kept, in ms since the Unix epoch. */
  readonly olderThan?: number | undefined;
  /** Only of this run. */
  readonly runId?: string | undefined;
  /** Whether a run's newest may be deleted, too. Default: it is kept. */
  readonly evenLast?: boolean | undefined;
}

export interface LineageStep extends CheckpointOrigin {
  /** Null if the checkpoint was deleted. */
  readonly metadata: CheckpointMetadata | null;
}
