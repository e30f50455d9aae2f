import type { KeyRing } from "../storage/encryption/key-ring.js";
import {
  encryptRecords,
  encryptStores,
  fieldOf,
  type Encrypted,
  type RecordsOf,
} from "../storage/indexeddb/encrypt-records.js";
import { placeOfCheckpoint, placeOfMetadata, placeOfValue, placeOfWrite } from "./places.js";
import { CONTENT, type SaverConnection, type SaverSchema } from "./schema.js";
import { serializedCodec } from "./serialized.js";

type Content = (typeof CONTENT)[number];

const RECORDS: { readonly [Name in Content]: RecordsOf<SaverSchema[Name]["value"]>["payloadsIn"] } = {
  checkpoints: (record) => [
    ...fieldOf(record, "checkpoint", placeOfCheckpoint(record)),
    ...fieldOf(record, "metadata", placeOfMetadata(record)),
  ],
  values: (record) => fieldOf(record, "value", placeOfValue(record)),
  writes: (record) => fieldOf(record, "value", placeOfWrite(record)),
};

/** Encrypts what was saved before the database had a key, or before its data key was changed. */
export function encryptRest(connection: SaverConnection, ring: KeyRing, signal: AbortSignal): Promise<boolean> {
  const codec = serializedCodec(ring.codec);
  const encrypt = <Name extends Content>(name: Name): Promise<Encrypted> =>
    encryptRecords({ connection, ring, signal }, name, { payloadsIn: RECORDS[name], codec });
  return encryptStores(
    ring,
    CONTENT.map((name) => () => encrypt(name)),
  );
}
