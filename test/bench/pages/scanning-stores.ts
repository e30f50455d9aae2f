import type { Checkpoint, CheckpointMetadata } from "ag-ui-local-runtime/checkpoint";
import { openDB, type IDBPDatabase } from "idb";

/** What both kinds of stores are asked in the bench. */
export interface Contestant {
  save(checkpoint: Checkpoint): Promise<void>;
  latest(runId: string): Promise<Checkpoint | null>;
  load(runId: string, nodeId?: string): Promise<Checkpoint | null>;
  list(graphId: string, query?: { runId?: string; limit?: number }): Promise<CheckpointMetadata[]>;
}

/** Where a store that looks through everything has everything. */
interface Shelf {
  put(checkpoint: Checkpoint): Promise<void>;
  all(): Promise<Checkpoint[]>;
}

/**
 * Answers as AgentOS' own store does: by looking at each checkpoint and sorting what fits, and by writing each listed
 * state out as JSON for its size.
 */
function scanningStore({ put, all }: Shelf): Contestant {
  const fitting = async (fits: (checkpoint: Checkpoint) => boolean): Promise<Checkpoint[]> =>
    (await all()).filter(fits).sort((a, b) => b.timestamp - a.timestamp);
  const load = async (runId: string, nodeId?: string): Promise<Checkpoint | null> =>
    (await fitting((it) => it.runId === runId && (nodeId === undefined || it.nodeId === nodeId)))[0] ?? null;
  return {
    save: put,
    load,
    latest: (runId) => load(runId),
    async list(graphId, { runId, limit } = {}) {
      const found = await fitting((it) => it.graphId === graphId && (runId === undefined || it.runId === runId));
      return found.slice(0, limit).map((it) => ({
        id: it.id,
        runId: it.runId,
        graphId: it.graphId,
        nodeId: it.nodeId,
        timestamp: it.timestamp,
        stateSize: JSON.stringify(it.state).length,
        hasMemorySnapshot: it.memorySnapshot !== undefined,
      }));
    },
  };
}

/** The original: in memory, by reference. */
export function scanningInMemory(): Contestant {
  const checkpoints = new Map<string, Checkpoint>();
  return scanningStore({
    put: async (checkpoint) => void checkpoints.set(checkpoint.id, checkpoint),
    all: () => Promise.resolve([...checkpoints.values()]),
  });
}

/** The same idea, kept: one store of IndexedDB, no index. */
export async function scanningInIndexedDB(
  dbName: string,
): Promise<{ readonly db: IDBPDatabase; readonly store: Contestant }> {
  const db = await openDB(dbName, 1, { upgrade: (made) => void made.createObjectStore("all", { keyPath: "id" }) });
  const store = scanningStore({
    async put(checkpoint) {
      const tx = db.transaction("all", "readwrite", { durability: "strict" });
      void tx.store.put(checkpoint);
      tx.commit();
      await tx.done;
    },
    all: () => db.getAll("all"),
  });
  return { db, store };
}
