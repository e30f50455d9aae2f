import type { AgentConfig } from "@ag-ui/client";
import { invalidInput } from "./errors.js";

/** The names of all options; the compiler checks the list against the type. */
export type Names<Options> = Readonly<Record<keyof Options, true>>;

/** The options of every AG-UI agent. */
export const AGENT_NAMES: Names<AgentConfig> = {
  agentId: true,
  description: true,
  threadId: true,
  initialMessages: true,
  initialState: true,
  debug: true,
};

/** By an option name of another library: how it is written here. */
export type Elsewhere = Readonly<Record<string, string>>;

interface Named {
  /** Whose options: "AgentRuntime". */
  readonly of: string;
  /** Where the options stand among its own: "cors". */
  readonly within?: string;
  readonly elsewhere?: Elsewhere;
  /** Some are required: `undefined` is refused, too. */
  readonly isRequired?: true;
}

/**
 * Refuses unknown options: they are misspelt, or meant to protect something.
 *
 * @throws RunnerError `invalid-input`
 */
export function checkNames<Options extends object>(
  given: Options | undefined,
  names: Names<Options>,
  named: Named,
): void {
  const { of, within, elsewhere = {}, isRequired } = named;
  if (given === undefined && isRequired !== true) return;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    const field = within ?? "options";
    throw invalidInput(field, `${of}: ${field} must be an object`);
  }
  for (const name of namesIn(given)) {
    if (Object.hasOwn(names, name) || Reflect.get(given, name) === undefined) continue;
    const label = String(name);
    const field = within === undefined ? label : `${within}.${label}`;
    const instead = Object.hasOwn(elsewhere, label) ? elsewhere[label] : `there are ${Object.keys(names).join(", ")}`;
    throw invalidInput(field, `${of} has no option ${field}: ${instead}`);
  }
}

/** All property names, inherited ones too, except those that every object has. */
function namesIn(given: object): readonly PropertyKey[] {
  const names = Reflect.ownKeys(given);
  let link = Object.getPrototypeOf(given) as object | null;
  for (; link !== null; link = Object.getPrototypeOf(link) as object | null) {
    const isRoot = Object.getPrototypeOf(link) === null && Object.hasOwn(link, "hasOwnProperty");
    if (!isRoot) names.push(...Reflect.ownKeys(link).filter((name) => name !== "constructor"));
  }
  return names;
}

/** @throws RunnerError `invalid-input` for a given value that is no list */
export function checkList(field: string, given: unknown): void {
  if (given === undefined || Array.isArray(given)) return;
  throw invalidInput(field, `${field} must be a list`);
}

/** @throws RunnerError `invalid-input` for a given value that is no boolean: `"false"` would count as true */
export function checkFlag(field: string, given: unknown): void {
  if (given === undefined || typeof given === "boolean") return;
  throw invalidInput(field, `${field} must be true or false`);
}
