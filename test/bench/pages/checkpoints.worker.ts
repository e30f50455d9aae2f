import { IndexedDBCheckpointStore, InMemoryCheckpointStore, type Checkpoint } from "ag-ui-local-runtime/checkpoint";
import { expose } from "comlink";
import { openDB, type IDBPDatabase } from "idb";
import { placeOf } from "../../../src/checkpoint/indexeddb/places.js";
import { metadataOf } from "../../../src/checkpoint/derive.js";
import { scanningInIndexedDB, scanningInMemory, type Contestant } from "./scanning-stores.js";

export type Kind = "indexeddb" | "memory" | "scanning-indexeddb" | "scanning-memory";

/** Checkpoints of a run, at so many nodes. */
const OF_RUN = 100;
const NODES = 10;
/** Written in one transaction while a store is filled. */
const AT_ONCE = 1_000;
/** The clock has steps of 0.1 ms: so many calls are timed as one. */
const TOGETHER = 10;

/** About so many bytes of JSON, in messages of 1 KB as an agent's state has them. */
const messages = (bytes: number): unknown[] =>
  Array.from({ length: Math.ceil(bytes / 1_000) }, (_, n) => ({
    id: `message-${n}`,
    role: "assistant",
    content: "x".repeat(Math.min(bytes, 950)),
  }));

const runOf = (n: number): string => `run ${Math.floor(n / OF_RUN)}`;

const checkpointOf = (n: number, bytes: number): Checkpoint => ({
  id: `checkpoint ${n}`,
  graphId: "graph",
  runId: runOf(n),
  nodeId: `node ${n % NODES}`,
  timestamp: n,
  state: {
    input: {},
    scratch: messages(bytes),
    artifacts: {},
    diagnostics: {
      totalTokensUsed: 0,
      totalDurationMs: 0,
      nodeTimings: {},
      discoveryResults: {},
      guardrailResults: {},
      checkpointsSaved: n,
      memoryReads: 0,
      memoryWrites: 0,
    },
  },
  nodeResults: {},
  visitedNodes: [`node ${n % NODES}`],
  pendingEdges: [],
});

interface Filled {
  readonly store: Contestant;
  /** Puts many in at once; undefined where one by one is as good. */
  readonly fill?: (checkpoints: readonly Checkpoint[]) => Promise<void>;
}

async function open(kind: Kind, dbName: string): Promise<Filled> {
  if (kind === "memory") return { store: new InMemoryCheckpointStore() };
  if (kind === "scanning-memory") return { store: scanningInMemory() };
  if (kind === "scanning-indexeddb") {
    const { db, store } = await scanningInIndexedDB(dbName);
    return { store, fill: (checkpoints) => put(db, "all", checkpoints) };
  }
  const store = new IndexedDBCheckpointStore({ dbName });
  await store.latest("none");
  const db = await openDB(`${dbName}.checkpoints`);
  // As the store itself would write them: 100,000 strict transactions would take minutes.
  const fill = async (checkpoints: readonly Checkpoint[]): Promise<void> => {
    const listed = checkpoints.map((it) => ({ ...metadataOf(it), place: placeOf(it, 0) }));
    await put(db, "metadata", listed);
    await put(
      db,
      "states",
      checkpoints.map((it) => ({ id: it.id, checkpoint: it })),
    );
  };
  return { store, fill };
}

async function put(db: IDBPDatabase, name: string, records: readonly unknown[]): Promise<void> {
  const tx = db.transaction(name, "readwrite");
  for (const record of records) void tx.store.put(record);
  await tx.done;
}

const stores = new Map<string, Filled>();
let saved = 0;

/** ms of each of so many calls. */
async function each(times: number, together: number, call: (n: number) => Promise<unknown>): Promise<number[]> {
  const ms: number[] = [];
  for (let time = 0; time < times; time++) {
    const begun = performance.now();
    for (let n = 0; n < together; n++) await call(time * together + n);
    ms.push((performance.now() - begun) / together);
  }
  return ms;
}

const api = {
  /** Opens a store and fills it with the checkpoints from the first up to the second, of so many bytes each. */
  async fill(name: string, kind: Kind, from: number, to: number, bytes: number): Promise<void> {
    const filled = stores.get(name) ?? (await open(kind, `bench-checkpoints-${name}`));
    stores.set(name, filled);
    const atOnce = Math.max(1, Math.min(AT_ONCE, Math.floor(10_000_000 / bytes)));
    for (let first = from; first < to; first += atOnce) {
      const some = Array.from({ length: Math.min(atOnce, to - first) }, (_, n) => checkpointOf(first + n, bytes));
      if (filled.fill === undefined) for (const it of some) await filled.store.save(it);
      else await filled.fill(some);
    }
  },
  /** ms per query, over runs all over the store. */
  async query(
    name: string,
    query: "latest" | "load" | "list" | "list of a run" | "list all",
    size: number,
    times: number,
    together = TOGETHER,
  ): Promise<number[]> {
    const { store } = stores.get(name)!;
    const run = (n: number): string => runOf((n * 7_919) % size);
    const asks = {
      latest: (n: number) => store.latest(run(n)),
      load: (n: number) => store.load(run(n), `node ${n % NODES}`),
      list: () => store.list("graph", { limit: 20 }),
      "list of a run": (n: number) => store.list("graph", { runId: run(n), limit: 20 }),
      "list all": () => store.list("graph"),
    };
    const answer = await asks[query](0);
    if (answer === null || (Array.isArray(answer) && answer.length === 0)) throw new Error(`${query} found nothing`);
    return each(times, together, asks[query]);
  },
  /** ms per save of a new checkpoint. */
  save(name: string, bytes: number, times: number): Promise<number[]> {
    const { store } = stores.get(name)!;
    const given = Array.from({ length: times }, () => ({
      ...checkpointOf(saved, bytes),
      id: `saved ${saved++}`,
      runId: "saved",
    }));
    return each(times, 1, (n) => store.save(given[n]!));
  },
};

export type CheckpointsApi = typeof api;

addEventListener("connect", (connecting) => {
  const [port] = (connecting as MessageEvent).ports;
  if (port === undefined) return;
  expose(api, port);
  port.postMessage("ready");
});
