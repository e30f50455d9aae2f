import { systemClock, type Clock } from "../../platform/clock.js";
import { randomId, type MakeId } from "../../platform/ids.js";
import { checkpointDbName, DEFAULT_DB_NAME } from "../../platform/names.js";
import { checkNames, type Names } from "../../run/options.js";
import { RunnerError } from "../../run/errors.js";
import { identityCodec, type PayloadCodec } from "../../storage/codec.js";
import { DatabaseConnection } from "../../storage/indexeddb/database-connection.js";
import type { Checkpoint, CheckpointMetadata } from "../checkpoint.js";
import type {
  CheckpointListQuery,
  CheckpointPatch,
  LineageStep,
  LocalCheckpointStore,
  PruneQuery,
  SaveIfResult,
} from "../checkpoint-store.js";
import { checkListQuery, checkOptions, checkPruneQuery, checkText, ownCheckpoint, ownPatch } from "../checks.js";
import { forkOf } from "../derive.js";
import { prune } from "./prune.js";
import { readCheckpoint, readLineage, readList, readNewest } from "./reads.js";
import { checkpointLayout, type CheckpointConnection } from "./schema.js";
import { remove, removeRun, save, saveIf } from "./writes.js";

/** Which database, and what the store is given of its surroundings. */
export interface IndexedDBCheckpointStoreOptions {
  /**
   * The runner's database name; checkpoints are in `<dbName>.checkpoints`. All stores of one name, in whichever
   * context, share their data. Default "ag-ui-local-runtime".
   */
  readonly dbName?: string;
  /** How long opening the database may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
  readonly clock?: Clock;
  readonly ids?: MakeId;
  readonly codec?: PayloadCodec;
}

const NAMES: Names<IndexedDBCheckpointStoreOptions> = {
  dbName: true,
  openTimeoutMs: true,
  clock: true,
  ids: true,
  codec: true,
};

/**
 * Keeps checkpoints in IndexedDB: what was saved survives the death of tab, worker and browser, and power loss. For
 * pages and workers; in Node it works on `fake-indexeddb`. Opens at the first use; after a failed call the next one
 * tries again.
 */
export class IndexedDBCheckpointStore implements LocalCheckpointStore {
  private readonly connection: CheckpointConnection;
  private readonly clock: Clock;
  private readonly ids: MakeId;
  private readonly codec: PayloadCodec;

  /** @throws RunnerError `invalid-input` for a wrong option */
  constructor(options: IndexedDBCheckpointStoreOptions = {}) {
    checkNames(options, NAMES, { of: "IndexedDBCheckpointStore" });
    checkOptions(options);
    const { dbName = DEFAULT_DB_NAME, openTimeoutMs } = options;
    this.clock = options.clock ?? systemClock;
    this.ids = options.ids ?? randomId;
    this.codec = options.codec ?? identityCodec;
    this.connection = new DatabaseConnection({
      dbName: checkpointDbName(dbName),
      layout: checkpointLayout,
      clock: this.clock,
      openTimeoutMs,
    });
  }

  async save(checkpoint: Checkpoint): Promise<void> {
    await save(this.connection, this.codec, ownCheckpoint(checkpoint));
  }

  async saveIf(checkpoint: Checkpoint, expectedLatestId: string | null): Promise<SaveIfResult> {
    if (expectedLatestId !== null) checkText("expectedLatestId", expectedLatestId);
    return saveIf(this.connection, this.codec, ownCheckpoint(checkpoint), expectedLatestId, this.ids());
  }

  async get(checkpointId: string): Promise<Checkpoint | null> {
    checkText("checkpointId", checkpointId);
    return readCheckpoint(this.connection, this.codec, checkpointId);
  }

  async load(runId: string, nodeId?: string): Promise<Checkpoint | null> {
    checkText("runId", runId);
    if (nodeId !== undefined) checkText("nodeId", nodeId);
    return readNewest(this.connection, this.codec, runId, nodeId);
  }

  latest(runId: string): Promise<Checkpoint | null> {
    return this.load(runId);
  }

  async list(graphId: string, query?: CheckpointListQuery): Promise<CheckpointMetadata[]> {
    checkText("graphId", graphId);
    return readList(this.connection, graphId, checkListQuery(query));
  }

  async delete(checkpointId: string): Promise<void> {
    checkText("checkpointId", checkpointId);
    await remove(this.connection, checkpointId);
  }

  /** Reads the source in its own transaction: if it is deleted meanwhile, the fork came first. */
  async fork(checkpointId: string, patchState?: CheckpointPatch): Promise<string> {
    const patch = ownPatch(patchState);
    const source = await this.get(checkpointId);
    if (source === null) throw new RunnerError("unknown-checkpoint", { checkpointId });
    const forked = forkOf(source, patch, { id: this.ids(), runId: this.ids(), timestamp: this.clock.now() });
    await save(this.connection, this.codec, forked);
    return forked.runId;
  }

  async deleteRun(runId: string): Promise<number> {
    checkText("runId", runId);
    return removeRun(this.connection, runId);
  }

  async prune(query: PruneQuery): Promise<number> {
    return prune(this.connection, checkPruneQuery(query));
  }

  async lineage(checkpointId: string): Promise<LineageStep[]> {
    checkText("checkpointId", checkpointId);
    return readLineage(this.connection, checkpointId);
  }

  close(): Promise<void> {
    return this.connection.close();
  }
}
