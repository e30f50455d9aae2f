import { systemClock, type Clock } from "../../platform/clock.js";
import { randomId, type MakeId } from "../../platform/ids.js";
import { checkNames, type Names } from "../../run/options.js";
import { RunnerError } from "../../run/errors.js";
import type { Checkpoint, CheckpointMetadata, CheckpointOrigin } from "../checkpoint.js";
import type {
  CheckpointListQuery,
  CheckpointPatch,
  LineageStep,
  LocalCheckpointStore,
  PruneQuery,
  SaveIfResult,
} from "../checkpoint-store.js";
import { checkListQuery, checkPruneQuery, checkText, ownCheckpoint, ownPatch } from "../checks.js";
import { forkOf, metadataOf } from "../derive.js";
import { Ordered, type Entry } from "./ordered.js";

/** What the store is given of its surroundings. */
export interface InMemoryCheckpointStoreOptions {
  readonly clock?: Clock;
  readonly ids?: MakeId;
}

const NAMES: Names<InMemoryCheckpointStoreOptions> = { clock: true, ids: true };

/** An unambiguous key of two ids. */
const pair = (one: string, other: string): string => JSON.stringify([one, other]);

/** Keeps checkpoints in memory: for tests, and for runs that need not outlive their context. */
export class InMemoryCheckpointStore implements LocalCheckpointStore {
  readonly #byId = new Map<string, Entry>();
  readonly #runs = new Ordered();
  readonly #nodes = new Ordered();
  readonly #graphs = new Ordered();
  readonly #graphRuns = new Ordered();
  readonly #origins = new Map<string, CheckpointOrigin>();
  readonly #clock: Clock;
  readonly #ids: MakeId;
  #turns = 0;
  #closed = false;

  /** @throws RunnerError `invalid-input` for unknown options */
  constructor(options: InMemoryCheckpointStoreOptions = {}) {
    checkNames(options, NAMES, { of: "InMemoryCheckpointStore" });
    const { clock = systemClock, ids = randomId } = options;
    this.#clock = clock;
    this.#ids = ids;
  }

  async save(checkpoint: Checkpoint): Promise<void> {
    this.#mustBeOpen();
    this.#put(ownCheckpoint(checkpoint));
  }

  async saveIf(checkpoint: Checkpoint, expectedLatestId: string | null): Promise<SaveIfResult> {
    this.#mustBeOpen();
    if (expectedLatestId !== null) checkText("expectedLatestId", expectedLatestId);
    const copy = ownCheckpoint(checkpoint);
    const newest = this.#runs.newest(copy.runId);
    if ((newest?.checkpoint.id ?? null) !== expectedLatestId)
      return { is: "conflict", latest: newest === undefined ? null : structuredClone(newest.metadata) };
    this.#put(copy);
    return { is: "saved", latest: structuredClone(this.#runs.newest(copy.runId)!.metadata) };
  }

  async get(checkpointId: string): Promise<Checkpoint | null> {
    this.#mustBeOpen();
    checkText("checkpointId", checkpointId);
    return copyOf(this.#byId.get(checkpointId));
  }

  async load(runId: string, nodeId?: string): Promise<Checkpoint | null> {
    this.#mustBeOpen();
    checkText("runId", runId);
    if (nodeId === undefined) return copyOf(this.#runs.newest(runId));
    checkText("nodeId", nodeId);
    return copyOf(this.#nodes.newest(pair(runId, nodeId)));
  }

  latest(runId: string): Promise<Checkpoint | null> {
    return this.load(runId);
  }

  async list(graphId: string, query?: CheckpointListQuery): Promise<CheckpointMetadata[]> {
    this.#mustBeOpen();
    checkText("graphId", graphId);
    const { runId, limit, before, after } = checkListQuery(query);
    const found =
      runId === undefined
        ? this.#graphs.between(graphId, before, after)
        : this.#graphRuns.between(pair(graphId, runId), before, after);
    const besideAfter = after !== undefined && before === undefined;
    const page = besideAfter ? found.slice(0, limit) : found.slice(Math.max(0, found.length - limit));
    return page.map(({ metadata }) => structuredClone(metadata)).toReversed();
  }

  async delete(checkpointId: string): Promise<void> {
    this.#mustBeOpen();
    checkText("checkpointId", checkpointId);
    this.#drop(this.#byId.get(checkpointId));
  }

  async fork(checkpointId: string, patchState?: CheckpointPatch): Promise<string> {
    this.#mustBeOpen();
    checkText("checkpointId", checkpointId);
    const patch = ownPatch(patchState);
    const source = copyOf(this.#byId.get(checkpointId));
    if (source === null) throw new RunnerError("unknown-checkpoint", { checkpointId });
    const forked = forkOf(source, patch, { id: this.#ids(), runId: this.#ids(), timestamp: this.#clock.now() });
    this.#put(forked);
    return forked.runId;
  }

  async deleteRun(runId: string): Promise<number> {
    this.#mustBeOpen();
    checkText("runId", runId);
    return this.#dropAll(this.#runs.all(runId));
  }

  async prune(query: PruneQuery): Promise<number> {
    this.#mustBeOpen();
    const { runId, keep, olderThan } = checkPruneQuery(query);
    const runs = runId === undefined ? this.#runs.keys() : [runId];
    const goes = runs.flatMap((run) => {
      const entries = this.#runs.all(run);
      const old = entries.slice(0, Math.max(0, entries.length - keep));
      return old.filter(({ checkpoint }) => checkpoint.timestamp < olderThan);
    });
    return this.#dropAll(goes);
  }

  async lineage(checkpointId: string): Promise<LineageStep[]> {
    this.#mustBeOpen();
    checkText("checkpointId", checkpointId);
    const first = this.#byId.get(checkpointId);
    const steps: LineageStep[] = [];
    let next = first && { checkpointId, runId: first.checkpoint.runId };
    // `forkedFrom` comes from callers and may be cyclic.
    const seen = new Set<string>();
    while (next !== undefined && !seen.has(next.runId)) {
      seen.add(next.runId);
      steps.push({ ...next, metadata: structuredClone(this.#byId.get(next.checkpointId)?.metadata ?? null) });
      next = this.#origins.get(next.runId);
    }
    return steps;
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new RunnerError("closed");
  }

  /** @param checkpoint owned by the store */
  #put(checkpoint: Checkpoint): void {
    const { id, runId, forkedFrom } = checkpoint;
    const turn = this.#turns++;
    const entry: Entry = { checkpoint, turn, metadata: metadataOf(checkpoint, turn) };
    const before = this.#byId.get(id);
    this.#byId.set(id, entry);
    this.#eachOrder(entry, (order, key) => order.add(key, entry));
    if (forkedFrom !== undefined) this.#origins.set(runId, { ...forkedFrom });
    this.#unlink(before);
  }

  #drop(entry: Entry | undefined): void {
    if (entry === undefined) return;
    this.#byId.delete(entry.checkpoint.id);
    this.#unlink(entry);
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

/** A value that holds itself, or one value twice, is a copy of the same shape. */
const copyOf = (entry: Entry | undefined): Checkpoint | null =>
  entry === undefined ? null : structuredClone(entry.checkpoint);
