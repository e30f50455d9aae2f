import { randomId } from "../../platform/ids.js";
import { RunnerError } from "../../run/errors.js";
import type { PayloadCodec } from "../../storage/codec.js";
import { quietly } from "../../storage/indexeddb/database-connection.js";
import { refuseEncrypted } from "../../storage/indexeddb/keyless.js";
import type { StoredCheckpoints } from "../checked-store.js";
import type { Checkpoint } from "../checkpoint.js";
import type { SaveIfResult } from "../checkpoint-store.js";
import { refuseUnstorable } from "../checks.js";
import { mayFollow, metadataOf, type Listed } from "../derive.js";
import { placeOfCheckpoint } from "./checks.js";
import { everyPlace, placeOf, placesAt, turnIn, turnOf } from "./places.js";
import { newestOf } from "./reads.js";
import { KEYS, STORES, TURNS, type CheckpointConnection, type CheckpointWrite, type StateRecord } from "./schema.js";

/** A checkpoint with everything computed before its transaction opens. */
interface Draft {
  readonly metadata: Listed;
  readonly state: StateRecord;
}

async function draftOf(codec: PayloadCodec, checkpoint: Checkpoint): Promise<Draft> {
  const { id } = checkpoint;
  const encoded = await codec.encode(checkpoint, placeOfCheckpoint(id)).catch((error: unknown) => {
    if (!RunnerError.is(error, "invalid-input")) throw error;
    return refuseUnstorable(String(error.details["field"]).replace(/^value/, "checkpoint"), error);
  });
  const state = { id, checkpoint: encoded };
  return { metadata: metadataOf(checkpoint), state };
}

/**
 * The next turn: higher than every issued one, and higher than those in the index at this timestamp, in the run and in the
 * graph, so that a wrong counter does no harm.
 */
async function nextTurn(tx: CheckpointWrite, { runId, graphId, timestamp }: Listed): Promise<number> {
  const metadata = tx.objectStore("metadata");
  const origins = tx.objectStore("origins");
  const [given, inRun, inGraph] = await Promise.all([
    origins.get(TURNS),
    metadata.index("run").openKeyCursor(placesAt([runId], timestamp)),
    metadata.index("graph").openKeyCursor(placesAt([graphId], timestamp)),
  ]);
  const last = given !== undefined && "turn" in given ? turnOf(given.turn) : -1;
  const turn = Math.max(last, turnIn(inRun?.key), turnIn(inGraph?.key)) + 1;
  quietly(origins.put({ runId: TURNS, turn }));
  return turn;
}

async function put(tx: CheckpointWrite, { metadata, state }: Draft, token?: string): Promise<void> {
  const { id, runId, forkedFrom } = metadata;
  const store = tx.objectStore("metadata");
  const [there, turn] = await Promise.all([store.get(id), nextTurn(tx, metadata)]);
  try {
    quietly(tx.objectStore("states").put(state));
  } catch (error) {
    throw (error as { name?: string } | null)?.name === "DataCloneError"
      ? refuseUnstorable("checkpoint", error)
      : error;
  }
  quietly(store.put({ ...metadata, place: placeOf(metadata, turn), ...(token !== undefined && { token }) }));
  if (forkedFrom !== undefined) quietly(tx.objectStore("origins").put({ runId, from: forkedFrom }));
  // The overwritten checkpoint may have been the last one of another run.
  if (there !== undefined && there.runId !== runId) await forgetEmpty(tx, there.runId);
}

/** A run's fork source is kept as long as it has checkpoints. */
async function forgetEmpty(tx: CheckpointWrite, runId: unknown): Promise<void> {
  if (typeof runId !== "string") return;
  const left = await tx.objectStore("metadata").index("run").getKey(everyPlace(runId));
  if (left === undefined) quietly(tx.objectStore("origins").delete(runId));
}

function drop(tx: CheckpointWrite, id: string): void {
  quietly(tx.objectStore("metadata").delete(id));
  quietly(tx.objectStore("states").delete(id));
}

/** Checkpoints deleted per transaction: other writers wait for it. */
export const BATCH = 128;

/**
 * Deletes the oldest checkpoints of a run, at most {@link BATCH}; an interruption leaves the newest.
 *
 * @param range places of the run
 * @returns how many
 */
export async function removeOldest(tx: CheckpointWrite, runId: string, range: IDBKeyRange): Promise<number> {
  const ids: string[] = [];
  let cursor = await tx.objectStore("metadata").index("run").openKeyCursor(range, "prev");
  while (cursor !== null && ids.push(cursor.primaryKey) < BATCH) cursor = await cursor.continue();
  for (const id of ids) drop(tx, id);
  await forgetEmpty(tx, runId);
  return ids.length;
}

export const checkpointWrites = (
  connection: CheckpointConnection,
  codec: PayloadCodec,
): Pick<StoredCheckpoints, "save" | "saveIf" | "delete"> => ({
  save: async (checkpoint) => {
    const draft = await draftOf(codec, checkpoint);
    await connection.write(STORES, "strict", async (tx) => {
      await refuseEncrypted(tx, codec, KEYS, [draft.state]);
      await put(tx, draft);
    });
  },

  saveIf: async (checkpoint, expectedLatestId) => {
    // A retry after an ambiguous commit recognizes its own write by it.
    const token = randomId();
    const draft = await draftOf(codec, checkpoint);
    const { id, runId } = checkpoint;
    return connection.write(STORES, "strict", async (tx): Promise<SaveIfResult> => {
      await refuseEncrypted(tx, codec, KEYS, [draft.state]);
      const latest = await newestOf(tx, runId);
      const written = (await tx.objectStore("metadata").get(id))?.token === token;
      if (!written) {
        if (!mayFollow(checkpoint, latest, expectedLatestId)) return { is: "conflict", latest };
        await put(tx, draft, token);
      }
      // Never null: at least this one exists.
      return { is: "saved", latest: (await newestOf(tx, runId))! };
    });
  },

  delete: (id) =>
    connection.write(STORES, "strict", async (tx) => {
      const there = await tx.objectStore("metadata").get(id);
      drop(tx, id);
      if (there !== undefined) await forgetEmpty(tx, there.runId);
    }),
});
