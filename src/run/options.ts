import type { AgentConfig } from "@ag-ui/client";
import { invalidInput } from "./errors.js";

/** What an option must be. */
export type Check = readonly [is: (given: unknown) => boolean, must: string];

/** A whole number: a count, or a time in ms. `endless`: or Infinity. */
export const whole = (least: number, { most = Infinity, endless = true } = {}): Check => [
  (given) =>
    (endless && given === Infinity) || (Number.isSafeInteger(given) && least <= Number(given) && Number(given) <= most),
  `a whole number, at least ${least}${most === Infinity ? "" : `, at most ${most}`}${endless ? ", or Infinity" : ""}`,
];
export const oneOf = <T extends string>(...all: readonly T[]): Check => [
  (given) => (all as readonly unknown[]).includes(given), // any value may be given
  `one of ${all.join(", ")}`,
];

export const FLAG: Check = [(given) => typeof given === "boolean", "true or false"];
export const FUNCTION: Check = [(given) => typeof given === "function", "a function"];
export const TEXT: Check = [(given) => typeof given === "string", "a string"];
export const ID: Check = [(given) => typeof given === "string" && given !== "", "a string that is not empty"];
/** Also the name of a worker that stands in for a user's: see `userOf`. */
export const USER: Check = [
  (given) => typeof given === "string" && /^[^\p{Cc}\p{Cs}]{1,200}(\n[^\n]+)?$/u.test(given),
  "1 to 200 characters, as in new SharedWorker(url, { name: user })",
];
export const LIST: Check = [Array.isArray, "a list"];
export const OBJECT: Check = [(given) => typeof given === "object" && given !== null, "an object"];
/** On, off, or how. */
export const SWITCH: Check = [(given) => FLAG[0](given) || OBJECT[0](given), "true, false or an object"];
const CLONABLE: Check = [isClonable, "what can be cloned"];
export const TEXTS: Check = [(given) => Array.isArray(given) && given.every(TEXT[0]), "a list of strings"];
export const NUMBER: Check = [(given) => typeof given === "number" && given >= 0, "a number, 0 or more"];
export const COUNT: Check = /* @__PURE__ */ whole(0);
/** A time-out, in ms: with 0 nothing would be in time. */
export const TIMEOUT: Check = /* @__PURE__ */ whole(1);

/** The methods of a `Clock`. */
export const CLOCK = ["now", "elapsed", "after"] as const;

/** What a given option must be: an object with these methods, for example; `true`: its owner checks it. */
type Kind = Check | readonly string[] | true;

/** The names of all options; the compiler checks the list against the type. */
export type Names<Options> = Readonly<Record<keyof Options, Kind>>;

/** The options of every AG-UI agent. */
export const AGENT_NAMES: Names<AgentConfig> = {
  agentId: ID,
  description: TEXT,
  threadId: ID,
  initialMessages: LIST,
  initialState: CLONABLE,
  debug: SWITCH,
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
  /** It may have other fields. */
  readonly isOpen?: boolean;
}

/**
 * Refuses options of another kind, which would fail later or silently, and unknown ones: they are misspelt, or meant to
 * protect something.
 *
 * @throws RunnerError `invalid-input`
 */
export function checkNames<Options extends object>(
  given: Options | undefined,
  names: Names<Options>,
  named: Named,
): void {
  const { of, within, elsewhere = {}, isRequired, isOpen } = named;
  if (given === undefined && isRequired !== true) return;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    const field = within ?? "options";
    throw invalidInput(field, `${of}: ${field} must be an object`);
  }
  for (const name of namesIn(given)) {
    const value: unknown = Reflect.get(given, name);
    if (value === undefined) continue;
    const label = String(name);
    const field = within === undefined ? label : `${within}.${label}`;
    if (Object.hasOwn(names, name)) {
      checkKind(field, value, names[name as keyof Options]);
      continue;
    }
    if (isOpen === true) continue;
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

function isClonable(given: unknown): boolean {
  try {
    structuredClone(given);
    return true;
  } catch {
    return false;
  }
}

/** @throws RunnerError `invalid-input` */
export function checkKind(field: string, given: unknown, kind: Kind): void {
  if (kind === true) return;
  const [is, must] = kind;
  if (typeof is === "function") {
    if (!is(given)) throw invalidInput(field, `${field} must be ${must}`);
    return;
  }
  for (const method of kind as readonly string[]) {
    // Any value may have methods, primitives too.
    checkKind(`${field}.${method}`, (given as Readonly<Record<string, unknown>> | null)?.[method], FUNCTION);
  }
}
