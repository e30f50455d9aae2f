import "fake-indexeddb/auto";
import {
  IndexedDBCheckpointStore,
  InMemoryCheckpointStore,
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointPatch,
  type CheckpointStore,
  type LocalCheckpointStore,
} from "ag-ui-local-runtime/checkpoint";
import { expect, expectTypeOf, test } from "vitest";
import type * as AgentOS from "./agentos.js";
import { diagnostics, openedStore } from "./kit.js";

test("a store of either side is one of the other's", () => {
  expectTypeOf<InMemoryCheckpointStore>().toExtend<AgentOS.ICheckpointStore>();
  expectTypeOf<IndexedDBCheckpointStore>().toExtend<AgentOS.ICheckpointStore>();
  expectTypeOf<LocalCheckpointStore>().toExtend<CheckpointStore>();
  expectTypeOf<CheckpointStore>().toExtend<AgentOS.ICheckpointStore>();
  expectTypeOf<AgentOS.ICheckpointStore>().toExtend<CheckpointStore>();
});

test("checkpoints and metadata of either side are those of the other", () => {
  expectTypeOf<Checkpoint>().toExtend<AgentOS.Checkpoint>();
  expectTypeOf<AgentOS.Checkpoint>().toExtend<Checkpoint>();
  expectTypeOf<CheckpointMetadata>().toExtend<AgentOS.CheckpointMetadata>();
  expectTypeOf<AgentOS.CheckpointMetadata>().toExtend<CheckpointMetadata>();
  expectTypeOf<Partial<AgentOS.GraphState>>().toExtend<CheckpointPatch>();
});

/**
 * Goes through nodes and saves after each, as a graph's runtime does with the store that it was given; `resume` takes
 * the id of a run or of a checkpoint.
 */
class Graph {
  readonly done: string[] = [];

  constructor(
    private readonly store: AgentOS.ICheckpointStore,
    private readonly dies: (node: string) => boolean = () => false,
  ) {}

  async resume(id: string): Promise<string[]> {
    const from = (await this.store.latest(id)) ?? (await this.store.get(id));
    if (from === null) throw new Error(`No checkpoint found for identifier ${id}`);
    return this.run(from.runId, from);
  }

  async run(runId: string, from?: AgentOS.Checkpoint): Promise<string[]> {
    const visited = from?.visitedNodes ?? [];
    let scratch = (from?.state.scratch ?? {}) as Record<string, unknown>;
    for (const node of ["plan", "read", "write"]) {
      if (visited.includes(node)) continue;
      if (this.dies(node)) throw new Error("The worker died");
      this.done.push(node);
      visited.push(node);
      scratch = { ...scratch, [node]: "done" };
      await this.store.save({
        id: crypto.randomUUID(),
        graphId: "essay",
        runId,
        nodeId: node,
        timestamp: Date.now(),
        state: { input: {}, scratch, artifacts: {}, diagnostics: diagnostics() },
        nodeResults: {},
        visitedNodes: visited,
        pendingEdges: [],
      });
    }
    return Object.keys(scratch);
  }
}

const stores: readonly [string, () => AgentOS.ICheckpointStore][] = [
  ["InMemoryCheckpointStore", () => new InMemoryCheckpointStore()],
  ["IndexedDBCheckpointStore", () => openedStore()],
];

test.each(stores)("a graph that dies goes on where it was, %s", async (_, open) => {
  const store = open();
  await expect(new Graph(store, (node) => node === "write").run("run")).rejects.toThrow("The worker died");
  const next = new Graph(store);
  expect(await next.resume("run")).toEqual(["plan", "read", "write"]);
  expect(next.done).toEqual(["write"]);
});

test.each(stores)("a graph goes on from any of its checkpoints in a run of its own, %s", async (_, open) => {
  const store = open();
  await new Graph(store).run("run");
  const plan = await store.load("run", "plan");
  const runId = await store.fork(plan!.id, { scratch: { plan: "another one" } });
  const other = new Graph(store);
  await other.resume(runId);
  expect(other.done).toEqual(["read", "write"]);
  expect((await store.latest(runId))?.state.scratch).toEqual({ plan: "another one", read: "done", write: "done" });
  expect((await store.latest("run"))?.state.scratch).toEqual({ plan: "done", read: "done", write: "done" });
});
