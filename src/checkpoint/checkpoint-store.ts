import type { Checkpoint, CheckpointMetadata, CheckpointOrigin, CheckpointState } from "./checkpoint.js";

/**
 * Keeps checkpoints: the contract of AgentOS' `ICheckpointStore`, compatible both ways.
 *
 * - The newest of several checkpoints must be that of the highest `timestamp`; of equal ones, the one saved last.
 * - What is given must be copied at the call, and what is handed out must be a copy: nobody changes what is stored.
 * - A write must be seen whole or not at all, by every reader, and after a crash. What it acknowledged must be durable
 *   where the store is.
 * - What cannot be kept (a value that cannot be cloned, a field of another shape) must be refused with RunnerError
 *   `invalid-input`, whose `details.field` names it, before anything is written.
 * - What a query costs must follow from what it gives, not from what is stored; `list` must read no states.
 *
 * Storage failures are RunnerErrors with the codes of storage; a record that is not valid is told as `corrupt-record` to
 * whoever asks for it, and left as it is.
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
  /** One that is not there is no error. */
  delete(checkpointId: string): Promise<void>;
  /**
   * Copies a checkpoint into a new run, in which it is the first: with an id, runId and timestamp of its own.
   *
   * @param patchState of each partition that it names, the named keys take its values whole (null and arrays included)
   *   and the others stay. A partition that is no object, here or there, is replaced. Other fields are ignored.
   * @returns the new runId
   * @throws RunnerError `unknown-checkpoint`
   */
  fork(checkpointId: string, patchState?: CheckpointPatch): Promise<string>;
}

/** The same, and what a store in a browser needs beyond it. */
export interface LocalCheckpointStore extends CheckpointStore {
  /**
   * Saves where the run's newest checkpoint is still the one that the caller knows, in one transaction: of two tabs that
   * go on from one checkpoint, one is told. The saved one is the newest only where its timestamp makes it so.
   *
   * @param expectedLatestId null: the run has none
   */
  saveIf(checkpoint: Checkpoint, expectedLatestId: string | null): Promise<SaveIfResult>;
  /**
   * Deletes what the run has, the oldest first and in several transactions: who is cut off leaves the newest ones.
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
   * The checkpoint, the one that its run was forked from, the one that that run was forked from, and so on. What a run
   * was forked from is known as long as it has a checkpoint.
   *
   * @returns empty where there is no such checkpoint
   */
  lineage(checkpointId: string): Promise<LineageStep[]>;
  /** What is asked afterwards is refused with RunnerError `closed`. */
  close(): Promise<void>;
}

/** Which checkpoints of a graph. */
export interface CheckpointListQuery {
  readonly runId?: string | undefined;
  /** At most so many; 0 is none. Absent: all. */
  readonly limit?: number | undefined;
  /** Only older ones than this: the last one of the page before. It need not be there any more. */
  readonly before?: CheckpointPlace | undefined;
  /**
   * Only newer ones than this: the first one of the page after. With a `limit`, and no `before`, those next to it; else the
   * newest.
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

/** What goes is what all given conditions let go; one of `keep` and `olderThan` must be given. */
export interface PruneQuery {
  /** So many of each run stay, the newest. */
  readonly keep?: number | undefined;
  /** Those from this time on stay, in ms since the Unix epoch. */
  readonly olderThan?: number | undefined;
  /** Only of this run. */
  readonly runId?: string | undefined;
  /** A run's newest may go too, so that nothing of it is left. Default: it stays. */
  readonly evenLast?: boolean | undefined;
}

export interface LineageStep extends CheckpointOrigin {
  /** Null where the checkpoint was deleted. */
  readonly metadata: CheckpointMetadata | null;
}
