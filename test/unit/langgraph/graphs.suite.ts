import { MemorySaver, uuid6, type BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  Annotation,
  Command,
  DeltaChannel,
  END,
  NodeInterrupt,
  Send,
  START,
  StateGraph,
  type StateSnapshot,
} from "@langchain/langgraph/web";
import { describe, expect, test } from "vitest";
import { freshName, opened } from "./kit.js";

const list = Annotation<string[]>({ reducer: (left, right) => [...left, ...right], default: () => [] });

const State = Annotation.Root({ log: list, topic: Annotation<string> });

/** Three nodes in a row, of which the middle one fails while `fails` says so. */
function rowOf(saver: BaseCheckpointSaver, done: string[], fails: () => boolean) {
  const node = (name: string) => async (): Promise<typeof State.Update> => {
    if (name === "second" && fails()) throw new Error("killed");
    done.push(name);
    return { log: [name] };
  };
  return new StateGraph(State)
    .addNode("first", node("first"))
    .addNode("second", node("second"))
    .addNode("third", node("third"))
    .addEdge(START, "first")
    .addEdge("first", "second")
    .addEdge("second", "third")
    .addEdge("third", END)
    .compile({ checkpointer: saver });
}

/** Two tasks of one step, of which one fails: the other is not done again. */
function sideBySide(saver: BaseCheckpointSaver, done: string[], fails: () => boolean) {
  return new StateGraph(State)
    .addNode("one", async () => {
      done.push("one");
      return { log: ["one"] };
    })
    .addNode("two", async () => {
      if (fails()) throw new Error("killed");
      done.push("two");
      return { log: ["two"] };
    })
    .addEdge(START, "one")
    .addEdge(START, "two")
    .addEdge("one", END)
    .addEdge("two", END)
    .compile({ checkpointer: saver });
}

/** Sends to many tasks, a subgraph with a state of its own, and a question to a person. */
function manySided(saver: BaseCheckpointSaver, answered: () => boolean) {
  const inner = new StateGraph(State)
    .addNode("inner", async ({ topic }) => ({ log: [`inner ${topic}`] }))
    .addNode("ask", async () => {
      // Its `interrupt` needs Node's way to know the task that calls.
      if (!answered()) throw new NodeInterrupt("which?");
      return { log: ["answered"] };
    })
    .addEdge(START, "inner")
    .addEdge("inner", "ask")
    .addEdge("ask", END)
    .compile();
  return new StateGraph(State)
    .addNode("plan", async () => ({ topic: "lighthouses", log: ["plan"] }))
    .addNode("part", async ({ topic }: typeof State.State) => ({ log: [`part ${topic}`] }))
    .addNode("sub", inner)
    .addEdge(START, "plan")
    .addConditionalEdges("plan", () => ["a", "b", "c"].map((topic) => new Send("part", { topic })), ["part"])
    .addEdge("part", "sub")
    .addEdge("sub", END)
    .compile({ checkpointer: saver });
}

/** A channel that is stored as its changes, with its whole value at times. */
function ofDeltas(saver: BaseCheckpointSaver, snapshotFrequency: number) {
  const Deltas = Annotation.Root({
    log: () => new DeltaChannel<string[], string[]>((now, writes) => [...now, ...writes.flat()], { snapshotFrequency }),
    count: Annotation<number>({ reducer: (left, right) => left + right, default: () => 0 }),
  });
  return new StateGraph(Deltas)
    .addNode("step", async ({ count }) => ({ log: [`step ${count}`], count: 1 }))
    .addEdge(START, "step")
    .addConditionalEdges("step", ({ count }) => (count % 5 === 0 ? END : "step"), ["step", END])
    .compile({ checkpointer: saver });
}

const thread = (): RunnableConfig & { configurable: Record<string, unknown> } => ({
  configurable: { thread_id: uuid6(0) },
});

async function historyOf(
  graph: { getStateHistory(config: RunnableConfig): AsyncIterable<StateSnapshot> },
  config: RunnableConfig,
): Promise<StateSnapshot[]> {
  const all: StateSnapshot[] = [];
  for await (const snapshot of graph.getStateHistory(config)) all.push(snapshot);
  return all;
}

/** What two savers must agree on: not ids and times. */
const essence = ({ values, next, metadata, tasks }: StateSnapshot): unknown => ({
  values,
  next,
  source: metadata?.source,
  step: metadata?.step,
  tasks: tasks.map(({ name, error, interrupts }) => ({
    name,
    error: error === undefined ? undefined : String((error as { message?: unknown }).message ?? error),
    interrupts: interrupts.map(({ value }) => value),
  })),
});

/** Graphs of LangGraph.js over the saver, on whichever IndexedDB is there. */
export function describeGraphs(name: string): void {
  describe(name, () => {
    test("a graph that is killed in the middle goes on where it was, in another host", async () => {
      const dbName = freshName();
      const config = thread();
      const done: string[] = [];
      let killed = true;
      const before = opened(dbName);
      await expect(rowOf(before, done, () => killed).invoke({ topic: "t" }, config)).rejects.toThrow("killed");
      await before.close();
      killed = false;
      const graph = rowOf(opened(dbName), done, () => killed);
      expect((await graph.getState(config)).next).toEqual(["second"]);
      expect(await graph.invoke(null, config)).toEqual({ topic: "t", log: ["first", "second", "third"] });
      expect(done).toEqual(["first", "second", "third"]);
    });

    test("a task that had ended beside the one that failed is not done again", async () => {
      const dbName = freshName();
      const config = thread();
      const done: string[] = [];
      let killed = true;
      await expect(sideBySide(opened(dbName), done, () => killed).invoke({}, config)).rejects.toThrow("killed");
      expect(done).toEqual(["one"]);
      killed = false;
      expect(await sideBySide(opened(dbName), done, () => killed).invoke(null, config)).toEqual({
        log: ["one", "two"],
      });
      expect(done).toEqual(["one", "two"]);
    });

    test("sends, subgraphs and questions to a person come to what they come to in memory", async () => {
      const outcomes: unknown[] = [];
      for (const saver of [new MemorySaver(), opened()]) {
        let isAnswered = false;
        const graph = manySided(saver, () => isAnswered);
        const config = thread();
        const asked = await graph.invoke({}, config);
        const state = await graph.getState(config, { subgraphs: true });
        isAnswered = true;
        const answered = await graph.invoke(new Command({ resume: "this one" }), config);
        const inner = state.tasks.map(({ state: of }) => (of && "values" in of ? essence(of as StateSnapshot) : of));
        outcomes.push({
          asked: { ...asked, __interrupt__: undefined },
          inner,
          answered,
          history: (await historyOf(graph, config)).map(essence),
        });
      }
      expect(outcomes[1]).toEqual(outcomes[0]);
      expect(outcomes[1]).toMatchObject({
        answered: { log: expect.arrayContaining(["part c", "inner lighthouses", "answered"]) },
      });
    });

    test("a graph goes on from any moment of its past, each branch with its own values", async () => {
      const outcomes: unknown[] = [];
      for (const saver of [new MemorySaver(), opened()]) {
        const graph = rowOf(saver, [], () => false);
        const config = thread();
        await graph.invoke({ topic: "first" }, config);
        const past = (await historyOf(graph, config)).find(({ next }) => next[0] === "second")!;
        const forks: RunnableConfig[] = [];
        for (const topic of ["left", "right"]) {
          forks.push(await graph.updateState(past.config, { topic, log: [topic] }));
        }
        // LangGraph's own way to copy a checkpoint beside itself.
        forks.push(await graph.updateState(past.config, null, "__copy__"));
        const ends = [];
        for (const fork of forks) ends.push(await graph.invoke(null, fork));
        const states = [];
        for (const fork of [past.config, ...forks]) states.push((await graph.getState(fork)).values);
        outcomes.push({ ends, states, history: (await historyOf(graph, config)).map(essence) });
      }
      expect(outcomes[1]).toEqual(outcomes[0]);
      expect(outcomes[1]).toMatchObject({ ends: [{ topic: "left" }, { topic: "right" }, { topic: "first" }] });
    });

    test.each([1, 3, 1_000])("channels stored as changes are rebuilt, with a whole value at each %i", async (every) => {
      const outcomes: unknown[] = [];
      for (const saver of [new MemorySaver(), opened()]) {
        const config = thread();
        const results = [];
        // A graph of its own for each run: nothing is left in memory.
        for (let run = 0; run < 3; run++)
          results.push(await ofDeltas(saver, every).invoke({ count: run === 0 ? 0 : 1 }, config));
        const graph = ofDeltas(saver, every);
        const history = await historyOf(graph, config);
        outcomes.push({ results, history: history.map(essence) });
      }
      expect(outcomes[1]).toEqual(outcomes[0]);
    });

    test.each(["exit", "async", "sync"] as const)(
      "a run of durability %s leaves its last state",
      async (durability) => {
        const dbName = freshName();
        const config = thread();
        const result = await rowOf(opened(dbName), [], () => false).invoke({ topic: "t" }, { ...config, durability });
        const state = await rowOf(opened(dbName), [], () => false).getState(config);
        expect(state.values).toEqual(result);
        expect(state.next).toEqual([]);
      },
    );
  });
}
