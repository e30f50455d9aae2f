import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { RunnerError } from "../run/errors.js";
import { invalid } from "./config.js";
import type { Serialized } from "./schema.js";

/**
 * @param field names the value in errors
 * @throws RunnerError `invalid-input` if the serializer rejects the value
 */
export async function serialize(serde: SerializerProtocol, field: string, value: unknown): Promise<Serialized> {
  let made: readonly [unknown, unknown];
  try {
    // Serializers pass bytes through: copy them, so that later changes have no effect.
    made = await serde.dumpsTyped(value instanceof Uint8Array ? new Uint8Array(value) : value);
  } catch (error) {
    throw invalid(field, "cannot be serialized", error);
  }
  const [type, data] = made;
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
    throw new RunnerError("corrupt-record", { ...at, cause: String(error) }, { cause: error });
  }
}
