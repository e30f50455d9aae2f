import { systemClock, type Clock } from "../platform/clock.js";
import { randomId, type MakeId } from "../platform/ids.js";
import { RunnerError } from "../run/errors.js";
import type { Checkpoint, CheckpointMetadata } from "./checkpoint.js";
import type {
  CheckpointListQuery,
  CheckpointPatch,
  LineageStep,
  LocalCheckpointStore,
  PruneQuery,
  SaveIfResult,
} from "./checkpoint-store.js";
import {
  checkCheckpoint,
  checkListQuery,
  checkPruneQuery,
  checkText,
  ownCheckpoint,
  ownPatch,
  type ListRange,
  type PruneRange,
} from "./checks.js";
import { forkOf } from "./derive.js";

/** The storage behind a {@link CheckedStore}. Input is checked and owned by it; results must be copies. */
export interface StoredCheckpoints {
  save(checkpoint: Checkpoint): Promise<void>;
  saveIf(checkpoint: Checkpoint, expectedLatestId: string | null): Promise<SaveIfResult>;
  get(id: string): Promise<Checkpoint | null>;
  /** The newest checkpoint of a run, or of a node in it. */
  newest(runId: string, nodeId: string | undefined): Promise<Checkpoint | null>;
  list(graphId: string, range: ListRange): Promise<CheckpointMetadata[]>;
  delete(id: string): Promise<void>;
  deleteRun(runId: string): Promise<number>;
  prune(range: PruneRange): Promise<number>;
  lineage(id: string): Promise<LineageStep[]>;
  close(): Promise<void>;
}

/** Checks and copies all input. */
export class CheckedStore implements LocalCheckpointStore {
  readonly #open: StoredCheckpoints;
  readonly #clock: Clock;
  readonly #ids: MakeId;
  #closed = false;

  /** @internal */
  protected constructor(
    stored: StoredCheckpoints,
    { clock = systemClock, ids = randomId }: { readonly clock?: Clock; readonly ids?: MakeId },
  ) {
    this.#open = stored;
    this.#clock = clock;
    this.#ids = ids;
  }

  get #stored(): StoredCheckpoints {
    if (this.#closed) throw new RunnerError("closed");
    return this.#open;
  }

  async save(checkpoint: Checkpoint): Promise<void> {
    await this.#stored.save(ownCheckpoint(checkpoint));
  }

  async saveIf(checkpoint: Checkpoint, expectedLatestId: string | null): Promise<SaveIfResult> {
    if (expectedLatestId !== null) checkText("expectedLatestId", expectedLatestId);
    return this.#stored.saveIf(ownCheckpoint(checkpoint), expectedLatestId);
  }

  async get(checkpointId: string): Promise<Checkpoint | null> {
    checkText("checkpointId", checkpointId);
    return this.#stored.get(checkpointId);
  }

  async load(runId: string, nodeId?: string): Promise<Checkpoint | null> {
    checkText("runId", runId);
    if (nodeId !== undefined) checkText("nodeId", nodeId);
    return this.#stored.newest(runId, nodeId);
  }

  latest(runId: string): Promise<Checkpoint | null> {
    return this.load(runId);
  }

  async list(graphId: string, query?: CheckpointListQuery): Promise<CheckpointMetadata[]> {
    checkText("graphId", graphId);
    return this.#stored.list(graphId, checkListQuery(query));
  }

  async delete(checkpointId: string): Promise<void> {
    checkText("checkpointId", checkpointId);
    await this.#stored.delete(checkpointId);
  }

  /** Reads the source first: if it is deleted in the meantime, the fork counts as earlier. */
  async fork(checkpointId: string, patchState?: CheckpointPatch): Promise<string> {
    const patch = ownPatch(patchState);
    const source = await this.get(checkpointId);
    if (source === null) throw new RunnerError("unknown-checkpoint", { checkpointId });
    const as = { id: this.#ids(), runId: this.#ids(), timestamp: this.#clock.now() };
    // The ids and the time are the caller's.
    const forked = checkCheckpoint(forkOf(source, patch, as));
    await this.#stored.save(forked);
    return forked.runId;
  }

  async deleteRun(runId: string): Promise<number> {
    checkText("runId", runId);
    return this.#stored.deleteRun(runId);
  }

  async prune(query: PruneQuery): Promise<number> {
    return this.#stored.prune(checkPruneQuery(query));
  }

  async lineage(checkpointId: string): Promise<LineageStep[]> {
    checkText("checkpointId", checkpointId);
    return this.#stored.lineage(checkpointId);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#open.close();
  }
}
