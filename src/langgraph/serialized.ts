import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { RunnerError } from "../run/errors.js";
import { isSealed, type PayloadCodec, type PayloadPlace } from "../storage/codec.js";
import { isSerialized } from "./checks.js";
import { invalid } from "./config.js";
import type { Serialized, StoredValue } from "./schema.js";

/**
 * @param field names the value in errors
 * @throws RunnerError `invalid-input` if the serializer rejects the value
 */
export async function serialize(serde: SerializerProtocol, field: string, value: unknown): Promise<Serialized> {
  let type: unknown;
  let data: unknown;
  try {
    // Serializers pass bytes through: copy them, so that later changes have no effect.
    [type, data] = await serde.dumpsTyped(value instanceof Uint8Array ? new Uint8Array(value) : value);
  } catch (error) {
    throw invalid(field, "cannot be serialized", error);
  }
  if (typeof type !== "string" || !ArrayBuffer.isView(data)) throw invalid(field, "was not serialized to bytes");
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  // A view would be stored with its whole buffer.
  return { type, data: data.byteLength === data.buffer.byteLength ? bytes : bytes.slice() };
}

/** @throws RunnerError `corrupt-record` if the serializer cannot read it */
export async function deserialize(
  serde: SerializerProtocol,
  { type, data }: Serialized,
  at: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  try {
    return await serde.loadsTyped(type, data);
  } catch (error) {
    // Its message may quote what was decrypted.
    const { name } = error instanceof Error ? error : { name: typeof error };
    throw new RunnerError("corrupt-record", { ...at, cause: name }, { cause: error });
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Bytes of the length of a type, at the end. */
const LENGTH = 2;

/** As bytes: what was serialized needs no other form before it is encrypted. */
function packed({ type, data: { buffer, byteOffset, byteLength } }: Serialized): Uint8Array {
  const name = encoder.encode(type);
  const bytes = new Uint8Array(byteLength + name.length + LENGTH);
  bytes.set(new Uint8Array(buffer, byteOffset, byteLength));
  bytes.set(name, byteLength);
  new DataView(bytes.buffer).setUint16(byteLength + name.length, name.length);
  return bytes;
}

/** Errors: any, for what {@link packed} did not make. */
function unpacked(bytes: unknown): Serialized {
  if (!(bytes instanceof Uint8Array)) throw new RangeError();
  const end = bytes.length - LENGTH;
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint16(end);
  // A copy: values may be given out as they are, and whoever takes their buffer must find nothing else in it.
  return { type: decoder.decode(bytes.subarray(end - length, end)), data: bytes.slice(0, end - length) };
}

/** The codec of serialized values. */
export const serializedCodec = (codec: PayloadCodec): PayloadCodec =>
  codec.isPlain === true
    ? codec
    : {
        ...codec,
        encode: async (value, place) => {
          // Somebody else may have stored it.
          if (!isSerialized(value)) throw new TypeError();
          return codec.encode(packed(value), place);
        },
        decode: async (stored, place) => {
          const value = await codec.decode(stored, place);
          return isSealed(stored) ? unpacked(value) : value;
        },
      };

export const encodeSerialized = async (
  codec: PayloadCodec,
  value: Serialized,
  place: PayloadPlace,
): Promise<StoredValue> =>
  // It was made for them.
  (await codec.encode(value, place)) as StoredValue;
