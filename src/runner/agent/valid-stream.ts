import type { BaseEvent } from "@ag-ui/client";
import { quoted } from "../../run/printable.js";

/** RUN_FINISHED events that stand for the return of an agent's function, which did not yield them. */
export const returns = new WeakSet<BaseEvent>();

/** The stream of an agent was rejected: it violates AG-UI. */
export class InvalidStream extends Error {}

/**
 * @param position its index in the stream
 * @throws InvalidStream where it is not an event
 */
export function mustBeEvent(given: unknown, position: number): asserts given is BaseEvent {
  const isObject = typeof given === "object" && given !== null;
  if (isObject && "type" in given && typeof given.type === "string") return;
  const what = Array.isArray(given) ? "array" : given === null ? "null" : quoted(given);
  throw new InvalidStream(`event ${position} is not an AG-UI event: it has no type (it is ${what})`);
}
