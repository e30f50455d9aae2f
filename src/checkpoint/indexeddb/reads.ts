import type { PayloadCodec } from "../../storage/codec.js";
import { refuseLocked } from "../../storage/indexeddb/keyless.js";
import type { StoredCheckpoints } from "../checked-store.js";
import type { CheckpointMetadata } from "../checkpoint.js";
import { lineageOf } from "../derive.js";
import { checkOriginRecord, corrupt, decodeCheckpoint, isPlaceOf, metadataIn } from "./checks.js";
import { everyPlace, MOST, placesBetween } from "./places.js";
import {
  KEYS,
  type CheckpointConnection,
  type CheckpointRead,
  type CheckpointWrite,
  type MetadataRecord,
} from "./schema.js";

async function metadataOf(reading: Promise<MetadataRecord | undefined>): Promise<CheckpointMetadata | null> {
  const record = await reading;
  return record === undefined ? null : metadataIn(record);
}

/** Metadata of a run's newest checkpoint, in a transaction over `metadata`. */
export const newestOf = (tx: CheckpointRead | CheckpointWrite, runId: string): Promise<CheckpointMetadata | null> =>
  metadataOf(tx.objectStore("metadata").index("run").get(everyPlace(runId)));

export const checkpointReads = (
  connection: CheckpointConnection,
  codec: PayloadCodec,
): Pick<StoredCheckpoints, "get" | "newest" | "list" | "lineage"> => ({
  get: async (id) => {
    await refuseLocked(connection, codec, KEYS);
    const record = await connection.read(["states"], (tx) => tx.objectStore("states").get(id));
    return record === undefined ? null : decodeCheckpoint(codec, id, record);
  },

  newest: async (runId, nodeId) => {
    await refuseLocked(connection, codec, KEYS);
    const newest = await connection.read(["metadata", "states"], async (tx) => {
      const metadata = tx.objectStore("metadata");
      const at =
        nodeId === undefined
          ? await metadata.index("run").openKeyCursor(everyPlace(runId))
          : await metadata.index("node").openKeyCursor(everyPlace(runId, nodeId));
      if (at === null) return undefined;
      const [id, place] = [at.primaryKey, at.key.at(-1)];
      return { id, place, record: await tx.objectStore("states").get(id) };
    });
    if (newest === undefined) return null;
    const checkpoint = await decodeCheckpoint(codec, newest.id, newest.record);
    // What the index has is not encrypted.
    const isAsIndexed =
      checkpoint.runId === runId &&
      (nodeId === undefined || checkpoint.nodeId === nodeId) &&
      isPlaceOf(newest.place, checkpoint.timestamp);
    if (!isAsIndexed) throw corrupt("states", { checkpointId: newest.id });
    return checkpoint;
  },

  // One transaction for a consistent list; large lists need a limit.
  list: async (graphId, { runId, limit, before, after }) => {
    const range = placesBetween(runId === undefined ? [graphId] : [graphId, runId], before, after);
    // `getAll` treats 0 as no limit.
    if (limit === 0 || range === undefined) return [];
    await refuseLocked(connection, codec, KEYS);
    const records = await connection.read(["metadata"], async (tx): Promise<MetadataRecord[]> => {
      const metadata = tx.objectStore("metadata");
      const index = runId === undefined ? metadata.index("graph") : metadata.index("graphRun");
      if (after === undefined || before !== undefined || limit === Infinity)
        return index.getAll(range, Math.min(limit, MOST));
      const page: MetadataRecord[] = [];
      let cursor = await index.openCursor(range, "prev");
      while (cursor !== null && page.push(cursor.value) < limit) cursor = await cursor.continue();
      return page.toReversed();
    });
    return records.map(metadataIn);
  },

  lineage: async (id) => {
    await refuseLocked(connection, codec, KEYS);
    return connection.read(["metadata", "origins"], async (tx) => {
      const [metadata, origins] = [tx.objectStore("metadata"), tx.objectStore("origins")];
      return lineageOf(
        id,
        (of) => metadataOf(metadata.get(of)),
        async (runId) => checkOriginRecord(await origins.get(runId))?.from,
      );
    });
  },
});
