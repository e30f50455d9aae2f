import type { StoredCheckpoints } from "../checked-store.js";
import type { PruneRange } from "../checks.js";
import { refuseLocked } from "../../storage/indexeddb/keyless.js";
import type { PayloadCodec } from "../../storage/codec.js";
import { behind, everyPlace, MOST, placesBetween } from "./places.js";
import { KEYS, STORES, type CheckpointConnection, type CheckpointRead, type CheckpointWrite } from "./schema.js";
import { BATCH, removeOldest } from "./writes.js";

/** Runs read per transaction: saves would wait for a longer read. */
const PAGE = 128;

/** The places of a run that a prune deletes; undefined: none. */
async function goingOf(
  tx: CheckpointRead | CheckpointWrite,
  runId: string,
  { keep, olderThan }: PruneRange,
): Promise<IDBKeyRange | undefined> {
  const older =
    olderThan === Infinity ? everyPlace(runId) : placesBetween([runId], { timestamp: olderThan }, undefined);
  const index = tx.objectStore("metadata").index("run");
  let first = await index.openKeyCursor(everyPlace(runId));
  if (keep > 0) first = (await first?.advance(Math.min(keep, MOST))) ?? null;
  if (first === null || older === undefined) return undefined;
  const from = indexedDB.cmp(first.key, older.lower) > 0 ? first.key : undefined;
  const range = from === undefined ? older : IDBKeyRange.bound(from, behind([runId]));
  return (await index.getKey(range)) === undefined ? undefined : range;
}

/** Runs after `after` that have something to prune, from one page of runs; `next`: more runs follow. */
function goingRuns(
  connection: CheckpointConnection,
  query: PruneRange,
  after: string | undefined,
): Promise<{ readonly runIds: readonly string[]; readonly next: string | undefined }> {
  return connection.read(["metadata"], async (tx) => {
    const index = tx.objectStore("metadata").index("run");
    const runIds: string[] = [];
    let cursor = await index.openKeyCursor(after === undefined ? null : IDBKeyRange.lowerBound(behind([after])));
    let last: string | undefined;
    for (let looked = 0; cursor !== null; looked++) {
      if (looked === PAGE) return { runIds, next: last };
      [last] = cursor.key;
      if ((await goingOf(tx, last, query)) !== undefined) runIds.push(last);
      // No key has this shape; the cursor moves to the next run.
      cursor = await cursor.continue(behind([last]) as typeof cursor.key);
    }
    return { runIds, next: undefined };
  });
}

async function pruneRun(
  connection: CheckpointConnection,
  runId: string,
  query: PruneRange,
  durability: "strict" | "relaxed",
): Promise<number> {
  let removed = 0;
  for (;;) {
    const some = await connection.write(STORES, durability, async (tx) => {
      const range = await goingOf(tx, runId, query);
      return range === undefined ? 0 : removeOldest(tx, runId, range);
    });
    removed += some;
    if (some < BATCH) return removed;
  }
}

export const checkpointPruning = (
  connection: CheckpointConnection,
  codec: PayloadCodec,
): Pick<StoredCheckpoints, "deleteRun" | "prune"> => ({
  // Like a thread, a run that somebody names is deleted without the key, too.
  deleteRun: (runId) => pruneRun(connection, runId, { runId, keep: 0, olderThan: Infinity }, "strict"),

  prune: async (query) => {
    await refuseLocked(connection, codec, KEYS);
    // Relaxed: records that a power loss restores are pruned by the next call.
    if (query.runId !== undefined) return pruneRun(connection, query.runId, query, "relaxed");
    let removed = 0;
    let after: string | undefined;
    do {
      const { runIds, next } = await goingRuns(connection, query, after);
      for (const runId of runIds) removed += await pruneRun(connection, runId, query, "relaxed");
      after = next;
    } while (after !== undefined);
    return removed;
  },
});
