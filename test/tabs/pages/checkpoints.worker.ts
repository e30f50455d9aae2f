import { IndexedDBCheckpointStore, type Checkpoint } from "ag-ui-local-runtime/checkpoint";
import { expose } from "comlink";

/** What a worker does that saves until it is ended, in the order in which it comes about. */
export type Step = { readonly is: "saving" | "saved" | "forking" | "forked"; readonly generation: number };

/** Large enough to take the browser a while to write. */
const PIECE = 20_000;
const PIECES = 20;

/** Every part of it says its generation. */
export const wholeOf = (id: string, runId: string, generation: number): Checkpoint => ({
  id,
  graphId: "graph",
  runId,
  nodeId: `${generation}`,
  timestamp: generation,
  state: {
    input: { generation },
    scratch: Array.from({ length: PIECES }, () => `${generation} `.padEnd(PIECE, "x")),
    artifacts: { generation },
    diagnostics: {
      totalTokensUsed: generation,
      totalDurationMs: 0,
      nodeTimings: {},
      discoveryResults: {},
      guardrailResults: {},
      checkpointsSaved: generation,
      memoryReads: 0,
      memoryWrites: 0,
    },
  },
  nodeResults: {},
  visitedNodes: [`${generation}`],
  pendingEdges: [],
});

const api = {
  /** Saves one checkpoint anew and anew, and forks it, until the worker is ended. */
  async write(dbName: string, from: number): Promise<never> {
    const store = new IndexedDBCheckpointStore({ dbName });
    const tell = (step: Step): void => postMessage(step);
    for (let generation = from; ; generation++) {
      tell({ is: "saving", generation });
      await store.save(wholeOf("whole", "run", generation));
      tell({ is: "saved", generation });
      tell({ is: "forking", generation });
      await store.fork("whole", { artifacts: { forked: generation } });
      tell({ is: "forked", generation });
    }
  },
  /** Adds one to the number in the run's newest checkpoint, so many times, whoever else does. */
  async count(dbName: string, times: number): Promise<number> {
    const store = new IndexedDBCheckpointStore({ dbName });
    let conflicts = 0;
    for (let left = times; left > 0;) {
      const latest = await store.latest("counted");
      const next = (latest?.timestamp ?? 0) + 1;
      const result = await store.saveIf(wholeOf(crypto.randomUUID(), "counted", next), latest?.id ?? null);
      if (result.is === "saved") left--;
      else conflicts++;
    }
    return conflicts;
  },
  /** Saves many at once: under ids of its own, and under those that others use too. */
  async saveMany(dbName: string, who: string, count: number): Promise<void> {
    const store = new IndexedDBCheckpointStore({ dbName });
    const saves = Array.from({ length: count }, (_, n) => [
      store.save(wholeOf(`${who} ${n}`, "many", n)),
      store.save(wholeOf(`shared ${n}`, `of ${who}`, n)),
    ]);
    await Promise.all(saves.flat());
  },
};

export type WorkerApi = typeof api;

expose(api);
