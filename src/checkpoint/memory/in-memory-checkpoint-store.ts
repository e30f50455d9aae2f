import type { Clock } from "../../platform/clock.js";
import type { MakeId } from "../../platform/ids.js";
import { checkNames, CLOCK, FUNCTION, type Names } from "../../run/options.js";
import { CheckedStore, type StoredCheckpoints } from "../checked-store.js";
import type { Checkpoint, CheckpointMetadata, CheckpointOrigin } from "../checkpoint.js";
import type { LineageStep, SaveIfResult } from "../checkpoint-store.js";
import type { ListRange, PruneRange } from "../checks.js";
import { lineageOf, mayFollow, metadataOf } from "../derive.js";
import { Ordered, type Entry } from "./ordered.js";

/** The dependencies of the store. */
export interface InMemoryCheckpointStoreOptions {
  readonly clock?: Clock;
  readonly ids?: MakeId;
}

const NAMES: Names<InMemoryCheckpointStoreOptions> = { clock: CLOCK, ids: FUNCTION };

/** Keeps checkpoints in memory: for tests, and for runs that need not outlive their context. */
export class InMemoryCheckpointStore extends CheckedStore {
  /** @throws RunnerError `invalid-input` for unknown options */
  constructor(options: InMemoryCheckpointStoreOptions = {}) {
    checkNames(options, NAMES, { of: "InMemoryCheckpointStore" });
    super(new Memory(), options);
  }
}

/** An unambiguous key of two ids. */
const pair = (one: string, other: string): string => JSON.stringify([one, other]);

/** Every call is synchronous, and so atomic. */
class Memory implements StoredCheckpoints {
  readonly #byId = new Map<string, Entry>();
  readonly #runs = new Ordered();
  readonly #nodes = new Ordered();
  readonly #graphs = new Ordered();
  readonly #graphRuns = new Ordered();
  readonly #origins = new Map<string, CheckpointOrigin>();
  #turns = 0;

  async save(checkpoint: Checkpoint): Promise<void> {
    this.#put(checkpoint);
  }

  async saveIf(checkpoint: Checkpoint, expectedLatestId: string | null): Promise<SaveIfResult> {
    const latest = structuredClone(this.#runs.newest(checkpoint.runId)?.metadata ?? null);
    if (!mayFollow(checkpoint, latest, expectedLatestId)) return { is: "conflict", latest };
    this.#put(checkpoint);
    return { is: "saved", latest: structuredClone(this.#runs.newest(checkpoint.runId)!.metadata) };
  }

  async get(id: string): Promise<Checkpoint | null> {
    return copyOf(this.#byId.get(id));
  }

  async newest(runId: string, nodeId: string | undefined): Promise<Checkpoint | null> {
    return copyOf(nodeId === undefined ? this.#runs.newest(runId) : this.#nodes.newest(pair(runId, nodeId)));
  }

  async list(graphId: string, { runId, limit, before, after }: ListRange): Promise<CheckpointMetadata[]> {
    const found =
      runId === undefined
        ? this.#graphs.between(graphId, before, after)
        : this.#graphRuns.between(pair(graphId, runId), before, after);
    const besideAfter = after !== undefined && before === undefined;
    const page = besideAfter ? found.slice(0, limit) : found.slice(Math.max(0, found.length - limit));
    return page.map(({ metadata }) => structuredClone(metadata)).toReversed();
  }

  async delete(id: string): Promise<void> {
    const entry = this.#byId.get(id);
    this.#byId.delete(id);
    this.#unlink(entry);
  }

  deleteRun(runId: string): Promise<number> {
    return this.prune({ runId, keep: 0, olderThan: Infinity });
  }

  async prune({ runId, keep, olderThan }: PruneRange): Promise<number> {
    const runs = runId === undefined ? this.#runs.keys() : [runId];
    const goes = runs.flatMap((run) => {
      const entries = this.#runs.all(run);
      const old = entries.slice(0, Math.max(0, entries.length - keep));
      return old.filter(({ checkpoint }) => checkpoint.timestamp < olderThan);
    });
    return this.#dropAll(goes);
  }

  async lineage(id: string): Promise<LineageStep[]> {
    return lineageOf(
      id,
      (of) => structuredClone(this.#byId.get(of)?.metadata ?? null),
      (runId) => this.#origins.get(runId),
    );
  }

  async close(): Promise<void> {}

  #put(checkpoint: Checkpoint): void {
    const turn = this.#turns++;
    const metadata = { ...metadataOf(checkpoint), turn };
    const { id, runId, forkedFrom } = metadata;
    const entry: Entry = { checkpoint, turn, metadata };
    const before = this.#byId.get(id);
    this.#byId.set(id, entry);
    this.#eachOrder(entry, (order, key) => order.add(key, entry));
    if (forkedFrom !== undefined) this.#origins.set(runId, { ...forkedFrom });
    this.#unlink(before);
  }

  /** Removes in bulk: one by one, each removal would shift all later entries. */
  #dropAll(entries: readonly Entry[]): number {
    const gone = new Set(entries);
    const touched = new Map<Ordered, Set<string>>();
    for (const entry of entries) {
      this.#byId.delete(entry.checkpoint.id);
      this.#eachOrder(entry, (order, key) => touched.set(order, (touched.get(order) ?? new Set()).add(key)));
    }
    for (const [order, keys] of touched) for (const key of keys) order.removeAll(key, gone);
    for (const runId of touched.get(this.#runs) ?? []) this.#forgetEmpty(runId);
    return entries.length;
  }

  #unlink(entry: Entry | undefined): void {
    if (entry === undefined) return;
    this.#eachOrder(entry, (order, key) => order.remove(key, entry));
    this.#forgetEmpty(entry.checkpoint.runId);
  }

  /** A run's fork source is kept as long as it has checkpoints. */
  #forgetEmpty(runId: string): void {
    if (this.#runs.newest(runId) === undefined) this.#origins.delete(runId);
  }

  #eachOrder({ checkpoint }: Entry, work: (order: Ordered, key: string) => void): void {
    const { runId, graphId, nodeId } = checkpoint;
    work(this.#runs, runId);
    work(this.#nodes, pair(runId, nodeId));
    work(this.#graphs, graphId);
    work(this.#graphRuns, pair(graphId, runId));
  }
}

/** A deep copy; cycles and shared references are preserved. */
const copyOf = (entry: Entry | undefined): Checkpoint | null =>
  entry === undefined ? null : structuredClone(entry.checkpoint);
