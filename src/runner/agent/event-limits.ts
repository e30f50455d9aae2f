import type { Message, RunAgentInput } from "@ag-ui/client";
import { invalidInput, messageOf } from "../../run/errors.js";
import { checkNames, whole, type Check, type Names } from "../../run/options.js";
import { PATCH_BOUNDS } from "../../run/patch-bounds.js";
import { jsonOf, weigh } from "../../run/size.js";

/**
 * What agents may emit. An event that exceeds a limit is not recorded: its run ends as errored (RUN_ERROR,
 * `EVENT_LIMIT`), and all earlier events are kept. A message or a state of a run's input that exceeds `maxDepth` or
 * `maxEventBytes` is refused as `invalid-input`.
 *
 * Bytes are UTF-16 code units of text and field names, plus 8 for each value: about the length of the JSON. Of a text
 * delta only its text counts.
 */
export interface EventLimits {
  /**
   * Nesting depth of lists and objects; the event itself is 1. Also of a state that patches build. Default and maximum
   * 200.
   */
  readonly maxDepth?: number;
  /** Size of one event. Default 16 MB (2^24). */
  readonly maxEventBytes?: number;
  /**
   * Operations of one STATE_DELTA or ACTIVITY_DELTA. Default and maximum 10,000. In any case they may shift at most
   * 100,000,000 list items.
   */
  readonly maxPatchOperations?: number;
  /** Bytes that the `copy` operations of one event copy. Default and maximum 1,000,000. */
  readonly maxCopiedBytes?: number;
  /** Size of a run: its events, and what their patches copy. Default 256 MB (2^28). */
  readonly maxRunBytes?: number;
  /** Events that the agent emits in one run. Default 2,000,000. */
  readonly maxRunEvents?: number;
  /** Size of all runs of a thread, on all branches. Default 1 GB (2^30). */
  readonly maxThreadBytes?: number;
}

const DEFAULTS: Required<EventLimits> = {
  maxDepth: PATCH_BOUNDS.depth,
  maxEventBytes: 2 ** 24,
  maxPatchOperations: PATCH_BOUNDS.operations,
  maxCopiedBytes: PATCH_BOUNDS.copied,
  maxRunBytes: 2 ** 28,
  maxRunEvents: 2_000_000,
  maxThreadBytes: 2 ** 30,
};

/** Every reader applies such a limit too, so no runner may accept more. */
const upTo = (most: number): Check => whole(1, { most, endless: false });

const NAMES: Names<EventLimits> = {
  maxDepth: upTo(DEFAULTS.maxDepth),
  maxEventBytes: whole(1, { endless: false }),
  maxPatchOperations: upTo(DEFAULTS.maxPatchOperations),
  maxCopiedBytes: upTo(DEFAULTS.maxCopiedBytes),
  maxRunBytes: whole(1),
  maxRunEvents: whole(1),
  maxThreadBytes: whole(1),
};

/** @throws RunnerError `invalid-input`, also for unknown limits */
export function eventLimits(given: EventLimits = {}): Required<EventLimits> {
  checkNames(given, NAMES, { of: "The runner", within: "eventLimits" });
  const limits = { ...DEFAULTS };
  // Read by name, so that inherited properties count too.
  for (const name of Object.keys(DEFAULTS) as (keyof EventLimits)[]) limits[name] = given[name] ?? DEFAULTS[name];
  return limits;
}

function checkWeight<T>(
  field: string,
  value: T,
  { maxDepth, maxEventBytes }: Required<EventLimits>,
  mustBeJson = true,
): T {
  const refuse = (must: string): never => {
    throw invalidInput(field, `${field} must ${must}`);
  };
  const { size, depth, odd } = weigh(value, { size: maxEventBytes, depth: maxDepth });
  if (depth > maxDepth) refuse(`be no deeper than ${maxDepth} levels (eventLimits.maxDepth)`);
  if (size > maxEventBytes) refuse(`have no more than ${maxEventBytes} bytes (eventLimits.maxEventBytes)`);
  if (odd === "BigInt" || (odd === "bytes" && mustBeJson))
    refuse(`hold no ${odd}, which JSON has not: send it as text`);
  return odd === "other" && mustBeJson ? jsonForm(field, value, maxEventBytes) : value;
}

function jsonForm<T>(field: string, value: T, most: number): T {
  let made: T | undefined;
  let why = `it is larger than ${most} bytes (eventLimits.maxEventBytes)`;
  try {
    made = jsonOf(value, most);
  } catch (error) {
    why = messageOf(error);
  }
  if (made !== undefined) return made;
  throw invalidInput(field, `${field} has no JSON: ${why}`);
}

/**
 * Checks the size and depth of what a request puts into the log or through a recursive check.
 *
 * @returns the request; each message, answer and state with non-JSON values is replaced by its JSON form
 * @throws RunnerError `invalid-input`
 */
export function checkRequestWeight(
  input: RunAgentInput,
  persisted: readonly Message[] | undefined,
  limits: Required<EventLimits>,
): { readonly input: RunAgentInput; readonly persisted: readonly Message[] | undefined } {
  const weighed = <T>(field: string, list: T): T =>
    Array.isArray(list) ? (list.map((item, at) => checkWeight(`${field}[${at}]`, item as unknown, limits)) as T) : list; // same length
  // Stored only where the agent or `recordInput` records them: their size is the caller's choice.
  const { tools, context, forwardedProps } = input;
  for (const [field, value] of Object.entries({ tools, context, forwardedProps })) {
    checkWeight(`input.${field}`, value as unknown, { ...limits, maxEventBytes: Infinity }, false);
  }
  return {
    input: {
      ...input,
      messages: weighed("input.messages", input.messages),
      state: checkWeight("input.state", input.state as unknown, limits),
      ...(input.resume !== undefined && { resume: weighed("input.resume", input.resume) }),
    },
    persisted: weighed("persistedInputMessages", persisted),
  };
}
