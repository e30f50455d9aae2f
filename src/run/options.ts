import type { AgentConfig } from "@ag-ui/client";
import { RunnerError } from "./errors.js";

/** Names of all options: the compiler holds the list against the type. */
export type Names<Options> = Readonly<Record<keyof Options, true>>;

/** Of what every agent of AG-UI's client is told. */
export const AGENT_NAMES: Names<AgentConfig> = {
  agentId: true,
  description: true,
  threadId: true,
  initialMessages: true,
  initialState: true,
  debug: true,
};

/** What is said of names that another library has for something here. */
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
 * Refuses an option that nobody heeds: it is misspelt, or meant to protect something.
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
    throw new RunnerError("invalid-input", { field }, { message: `${of}: ${field} must be an object` });
  }
  for (const name of namesIn(given)) {
    if (Object.hasOwn(names, name) || Reflect.get(given, name) === undefined) continue;
    const label = String(name);
    const field = within === undefined ? label : `${within}.${label}`;
    const instead = Object.hasOwn(elsewhere, label) ? elsewhere[label] : `there are ${Object.keys(names).join(", ")}`;
    throw new RunnerError("invalid-input", { field }, { message: `${of} has no option ${field}: ${instead}` });
  }
}

/** All names that reading an option may find, inherited ones too, but for those that every object has. */
function namesIn(given: object): readonly PropertyKey[] {
  const names = Reflect.ownKeys(given);
  let link = Object.getPrototypeOf(given) as object | null;
  for (; link !== null; link = Object.getPrototypeOf(link) as object | null) {
    const isRoot = Object.getPrototypeOf(link) === null && Object.hasOwn(link, "hasOwnProperty");
    if (!isRoot) names.push(...Reflect.ownKeys(link).filter((name) => name !== "constructor"));
  }
  return names;
}

/** @throws RunnerError `invalid-input` for what is given and no list */
export function checkList(field: string, given: unknown): void {
  if (given === undefined || Array.isArray(given)) return;
  throw new RunnerError("invalid-input", { field }, { message: `${field} must be a list` });
}

/** @throws RunnerError `invalid-input` for what is given and neither true nor false: `"false"` would count as true */
export function checkFlag(field: string, given: unknown): void {
  if (given === undefined || typeof given === "boolean") return;
  throw new RunnerError("invalid-input", { field }, { message: `${field} must be true or false` });
}
