import { equalJson } from "../run/json.js";

/** A runner failed a case. The message says what a runner must do, then what this one did. */
export class ConformanceError extends Error {
  override readonly name = "ConformanceError";
}

const LONGEST = 600;

/** A readable form of a value, truncated. */
export function shown(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // Circular, or a bigint.
  }
  text ??= String(value);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}… (${text.length} characters)`;
}

/** @param must what a runner must do and what this one did, as a sentence */
export function fail(must: string, instead?: string): never {
  throw new ConformanceError(instead === undefined ? must : `${must}; ${instead}`);
}

/** @throws ConformanceError if `holds` is false */
export function expectThat(holds: boolean, must: string, instead?: string): asserts holds {
  if (!holds) fail(must, instead);
}

/** Deep equality of JSON values; a field that is undefined counts as absent. */
export function expectSame(actual: unknown, expected: unknown, must: string): void {
  if (!equalJson(actual, expected)) fail(must, `expected ${shown(expected)}\n  but got  ${shown(actual)}`);
}
