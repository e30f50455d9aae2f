import type { KeyRing } from "../../storage/encryption/key-ring.js";
import { encryptRecords, fieldOf } from "../../storage/indexeddb/encrypt-records.js";
import { placeOfCheckpoint } from "./checks.js";
import type { CheckpointConnection } from "./schema.js";

/** Encrypts the checkpoints that were saved before the database had a key, or before its data key was changed. */
export async function encryptRest(connection: CheckpointConnection, ring: KeyRing, signal: AbortSignal): Promise<void> {
  const id = await ring.behind();
  if (id === undefined) return;
  const payloadsIn = (record: { readonly id: string }) => fieldOf(record, "checkpoint", placeOfCheckpoint(record.id));
  const end = await encryptRecords({ connection, ring, signal }, "states", { payloadsIn });
  if (end === "all") await ring.caughtUp(id);
}
