import fc from "fast-check";
import { expect, test } from "vitest";
import type { Checkpoint, CheckpointMetadata } from "../../../src/checkpoint/checkpoint.js";
import type {
  CheckpointListQuery,
  CheckpointPlace,
  LocalCheckpointStore,
  PruneQuery,
} from "../../../src/checkpoint/checkpoint-store.js";
import type { Clock } from "../../../src/platform/clock.js";
import { systemClock } from "../../../src/platform/clock.js";
import type { MakeId } from "../../../src/platform/ids.js";
import { times } from "../property.js";
import { checkpoint } from "./kit.js";

/** What a checkpoint is to somebody who keeps a list and looks through all of it. */
interface Kept {
  readonly checkpoint: Checkpoint;
  readonly saved: number;
}

/** A store as one would write it in ten minutes: every query looks at everything. */
class NaiveStore {
  private kept: Kept[] = [];
  private saves = 0;

  constructor(private readonly origins = new Map<string, { checkpointId: string; runId: string }>()) {}

  newestFirst(): Kept[] {
    return this.kept.toSorted((a, b) => b.checkpoint.timestamp - a.checkpoint.timestamp || b.saved - a.saved);
  }

  save(given: Checkpoint): void {
    this.kept = this.kept.filter((it) => it.checkpoint.id !== given.id);
    this.kept.push({ checkpoint: structuredClone(given), saved: this.saves++ });
    if (given.forkedFrom) this.origins.set(given.runId, given.forkedFrom);
    this.forget();
  }

  find(fits: (it: Checkpoint) => boolean): Checkpoint | null {
    return this.newestFirst().find((it) => fits(it.checkpoint))?.checkpoint ?? null;
  }

  remove(goes: (it: Checkpoint) => boolean): number {
    const before = this.kept.length;
    this.kept = this.kept.filter((it) => !goes(it.checkpoint));
    this.forget();
    return before - this.kept.length;
  }

  prune({ keep = 0, olderThan = Infinity, runId, evenLast }: PruneQuery): number {
    const goes = new Set<string>();
    for (const run of new Set(this.kept.map((it) => it.checkpoint.runId))) {
      if (runId !== undefined && run !== runId) continue;
      this.newestFirst()
        .filter((it) => it.checkpoint.runId === run)
        .forEach((it, n) => {
          if (n >= Math.max(keep, evenLast === true ? 0 : 1) && it.checkpoint.timestamp < olderThan)
            goes.add(it.checkpoint.id);
        });
    }
    return this.remove(({ id }) => goes.has(id));
  }

  /** @param place the index of the checkpoint in what is listed now */
  list(graphId: string, runId: string | undefined): Checkpoint[] {
    return this.newestFirst()
      .map((it) => it.checkpoint)
      .filter((it) => it.graphId === graphId && (runId === undefined || it.runId === runId));
  }

  lineage(id: string): string[] {
    const first = this.find((it) => it.id === id);
    const steps: string[] = [];
    const seen: string[] = [];
    let next = first ? { checkpointId: id, runId: first.runId } : undefined;
    while (next && !seen.includes(next.runId)) {
      const { checkpointId, runId } = next;
      seen.push(runId);
      steps.push(`${checkpointId} of ${runId}${this.find((it) => it.id === checkpointId) ? "" : ", gone"}`);
      next = this.origins.get(runId);
    }
    return steps;
  }

  private forget(): void {
    for (const run of this.origins.keys())
      if (!this.kept.some((it) => it.checkpoint.runId === run)) this.origins.delete(run);
  }
}

const id = fc.constantFrom("a", "b", "c", "d", "e", "f", "id-0", "id-2");
const run = fc.constantFrom("r1", "r2", "r3", "id-1", "id-3");
const graph = fc.constantFrom("g1", "g2");
const node = fc.constantFrom("n1", "n2");
const time = fc.constantFrom(0, 1, 1, 2, 3, 50);
const limit = fc.option(fc.nat(4), { nil: undefined });

const saved: fc.Arbitrary<Checkpoint> = fc
  .record({
    id,
    runId: run,
    graphId: graph,
    nodeId: node,
    timestamp: time,
    value: fc.jsonValue({ maxDepth: 2 }),
    from: fc.option(fc.record({ checkpointId: id, runId: run }), { nil: undefined, freq: 8 }),
  })
  .map(({ value, from, ...of }) => {
    const made = checkpoint(of.id, { ...of, ...(from && { forkedFrom: from }) });
    return { ...made, state: { ...made.state, scratch: value } };
  });

type Operation =
  | { readonly is: "save"; readonly checkpoint: Checkpoint }
  | { readonly is: "saveIf"; readonly checkpoint: Checkpoint; readonly expected: string | null }
  | { readonly is: "delete" | "fork" | "lineage"; readonly id: string; readonly patch?: unknown }
  | { readonly is: "deleteRun"; readonly runId: string }
  | { readonly is: "prune"; readonly query: PruneQuery }
  | { readonly is: "load"; readonly runId: string; readonly nodeId: string | undefined }
  | {
      readonly is: "list";
      readonly graphId: string;
      readonly runId: string | undefined;
      readonly limit: number | undefined;
      /** Which of those that are listed it begins behind, and before which it ends; with the turn or without. */
      readonly before: number | undefined;
      readonly after: number | undefined;
      readonly exact: boolean;
    };

const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });

const operations: fc.Arbitrary<Operation[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ is: fc.constant("save" as const), checkpoint: saved }) },
    {
      weight: 3,
      arbitrary: fc.record({ is: fc.constant("saveIf" as const), checkpoint: saved, expected: fc.option(id) }),
    },
    { weight: 2, arbitrary: fc.record({ is: fc.constant("delete" as const), id }) },
    {
      weight: 3,
      arbitrary: fc.record({ is: fc.constant("fork" as const), id, patch: fc.jsonValue({ maxDepth: 1 }) }),
    },
    { weight: 2, arbitrary: fc.record({ is: fc.constant("lineage" as const), id }) },
    { weight: 1, arbitrary: fc.record({ is: fc.constant("deleteRun" as const), runId: run }) },
    {
      weight: 1,
      arbitrary: fc.record({
        is: fc.constant("prune" as const),
        query: fc.record({ keep: fc.nat(2), olderThan: maybe(time), runId: maybe(run), evenLast: maybe(fc.boolean()) }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ is: fc.constant("load" as const), runId: run, nodeId: maybe(node) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        is: fc.constant("list" as const),
        graphId: graph,
        runId: maybe(run),
        limit,
        before: maybe(fc.nat(5)),
        after: maybe(fc.nat(5)),
        exact: fc.boolean(),
      }),
    },
  ),
  { minLength: 1, maxLength: 40 },
);

/** The scratch partition after a fork, for JSON. */
function patchedScratch(own: unknown, patch: unknown): unknown {
  const isObject = (value: unknown): value is object =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject(own) || !isObject(patch)) return patch;
  return Object.fromEntries([...Object.entries(own), ...Object.entries(patch)]);
}

async function checkList(
  store: LocalCheckpointStore,
  naive: NaiveStore,
  { graphId, runId, limit: most, before, after, exact }: Extract<Operation, { is: "list" }>,
): Promise<void> {
  const all = await store.list(graphId, { runId });
  const expected = naive.list(graphId, runId);
  expect(all.map((it) => it.id)).toEqual(expected.map((it) => it.id));
  const at = (n: number | undefined): CheckpointMetadata | undefined => (n === undefined ? undefined : all[n]);
  const placeOf = (it: CheckpointMetadata | undefined): CheckpointPlace | undefined =>
    it && (exact ? it : { timestamp: it.timestamp });
  const [first, last] = [at(before), at(after)];
  const query: CheckpointListQuery = { runId, limit: most, before: placeOf(first), after: placeOf(last) };
  let between = all.filter((it, n) => {
    const older = first === undefined || (exact ? n > before! : it.timestamp < first.timestamp);
    const newer = last === undefined || (exact ? n < after! : it.timestamp > last.timestamp);
    return older && newer;
  });
  if (most !== undefined)
    between =
      last !== undefined && first === undefined
        ? between.slice(Math.max(0, between.length - most))
        : between.slice(0, most);
  expect(await store.list(graphId, query)).toEqual(between);
}

async function apply(
  store: LocalCheckpointStore,
  naive: NaiveStore,
  operation: Operation,
  nextIds: MakeId,
): Promise<void> {
  switch (operation.is) {
    case "save":
      await store.save(operation.checkpoint);
      return naive.save(operation.checkpoint);
    case "saveIf": {
      const { checkpoint: given, expected } = operation;
      const latest = naive.find(({ runId }) => runId === given.runId);
      const saves = (latest?.id ?? null) === expected && given.timestamp >= (latest?.timestamp ?? -Infinity);
      if (saves) naive.save(given);
      const now = naive.find(({ runId }) => runId === given.runId);
      const result = await store.saveIf(given, expected);
      return expect([result.is, result.latest?.id ?? null]).toEqual([saves ? "saved" : "conflict", now?.id ?? null]);
    }
    case "delete":
      await store.delete(operation.id);
      return void naive.remove((it) => it.id === operation.id);
    case "deleteRun":
      return expect(await store.deleteRun(operation.runId)).toBe(naive.remove((it) => it.runId === operation.runId));
    case "prune":
      return expect(await store.prune(operation.query)).toBe(naive.prune(operation.query));
    case "lineage": {
      const steps = await store.lineage(operation.id);
      const said = steps.map(
        ({ checkpointId, runId, metadata }) => `${checkpointId} of ${runId}${metadata ? "" : ", gone"}`,
      );
      return expect(said).toEqual(naive.lineage(operation.id));
    }
    case "fork": {
      const source = naive.find((it) => it.id === operation.id);
      if (source === null)
        return expect(store.fork(operation.id)).rejects.toMatchObject({ code: "unknown-checkpoint" });
      const runId = await store.fork(operation.id, { scratch: operation.patch });
      const scratch = patchedScratch(source.state.scratch, operation.patch);
      const forkedFrom = { checkpointId: source.id, runId: source.runId };
      return naive.save({
        ...source,
        id: nextIds(),
        runId,
        timestamp: 7,
        state: { ...source.state, scratch },
        forkedFrom,
      });
    }
    case "load": {
      const { runId, nodeId } = operation;
      const fits = (it: Checkpoint): boolean => it.runId === runId && (nodeId === undefined || it.nodeId === nodeId);
      return expect(await store.load(runId, nodeId)).toEqual(naive.find(fits));
    }
    case "list":
      return checkList(store, naive, operation);
  }
}

/** Everything that can be asked of the two is answered alike. */
async function checkAll(store: LocalCheckpointStore, naive: NaiveStore): Promise<void> {
  const all = naive.newestFirst().map((it) => it.checkpoint);
  for (const it of all) {
    expect(await store.get(it.id)).toEqual(it);
    expect(await store.latest(it.runId)).toEqual(naive.find(({ runId }) => runId === it.runId));
    const fits = ({ runId, nodeId }: Checkpoint): boolean => runId === it.runId && nodeId === it.nodeId;
    expect(await store.load(it.runId, it.nodeId)).toEqual(naive.find(fits));
    const listed = (await store.list(it.graphId, { runId: it.runId })).map(({ id: listedId }) => listedId);
    expect(listed).toEqual(naive.list(it.graphId, it.runId).map(({ id: keptId }) => keptId));
  }
}

const clock: Clock = { ...systemClock, now: () => 7 };

/** Ids in a row, of which some are taken by others: a fork may take the place of what was saved under its id. */
function ids(): MakeId {
  let made = 0;
  return () => `id-${made++}`;
}

/**
 * Random operations, compared with a store that looks through everything.
 *
 * @param open a fresh store; `saveIf` may draw ids for itself from `nextId`
 */
export function testRandomCheckpoints(
  name: string,
  numRuns: number,
  open: (parts: { clock: Clock; ids: MakeId }) => { store: LocalCheckpointStore; end: () => Promise<void> },
): void {
  test(`${name}: random operations end as in a store that looks through everything`, async () => {
    const each = fc.asyncProperty(operations, async (given) => {
      let last = "";
      let before = "";
      const next = ids();
      const made: MakeId = () => {
        before = last;
        return (last = next());
      };
      const { store, end } = open({ clock, ids: made });
      const naive = new NaiveStore();
      try {
        // A fork draws the checkpoint's id, then the run's.
        for (const operation of given) await apply(store, naive, operation, () => before);
        await checkAll(store, naive);
      } finally {
        await end();
      }
    });
    await fc.assert(each, times(numRuns));
  });
}
