import type { PayloadCodec } from "../../storage/codec.js";
import type { KeyRing } from "../../storage/encryption/key-ring.js";
import { encryptRecords, encryptStores, fieldOf } from "../../storage/indexeddb/encrypt-records.js";
import { isCheckpoint } from "../checks.js";
import { placeOfCheckpoint } from "./checks.js";
import type { CheckpointConnection } from "./schema.js";

/** Encrypts the checkpoints that were saved before the database had a key, or before its data key was changed. */
export function encryptRest(connection: CheckpointConnection, ring: KeyRing, signal: AbortSignal): Promise<boolean> {
  const payloadsIn = (record: { readonly id: string }) => fieldOf(record, "checkpoint", placeOfCheckpoint(record.id));
  const codec: PayloadCodec = {
    ...ring.codec,
    encode: async (value, place) => {
      // What the user's own codec has made is read by that alone.
      if (!isCheckpoint(value)) throw new TypeError();
      return ring.codec.encode(value, place);
    },
  };
  return encryptStores(ring, [() => encryptRecords({ connection, ring, signal }, "states", { payloadsIn, codec })]);
}
