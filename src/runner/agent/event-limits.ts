import type { Message, RunAgentInput } from "@ag-ui/client";
import { messageOf, RunnerError } from "../../run/errors.js";
import { checkNames, type Names } from "../../run/options.js";
import { PATCH_BOUNDS } from "../../run/json-patch.js";
import { jsonOf, weigh } from "../../run/size.js";
import { checkOption } from "../checks.js";

/**
 * What agents may emit. An event that goes beyond a limit is not recorded: it ends its run as errored, RUN_ERROR
 * `code: "EVENT_LIMIT"`, and all before it is kept. A message or a state of a run's input that goes beyond `maxDepth` or
 * `maxEventBytes` is refused as `invalid-input`.
 *
 * Bytes are UTF-16 code units of text, those of field names included, and 8 for each value: about the length of the JSON.
 * Of a text delta only its text counts.
 */
export interface EventLimits {
  /**
   * How deep lists and objects stand in each other; 1 is the event itself. Also of a state that patches build. Default
   * 200, which is the most.
   */
  readonly maxDepth?: number;
  /** Of one event. Default 16 MB (2^24). */
  readonly maxEventBytes?: number;
  /**
   * Operations of one STATE_DELTA or ACTIVITY_DELTA. Default 10,000, which is the most. Whatever is set, they push aside
   * 100,000,000 items of lists at most.
   */
  readonly maxPatchOperations?: number;
  /** What the `copy` operations of one event copy. Default 1,000,000, which is the most. */
  readonly maxCopiedBytes?: number;
  /** Of a run: of its events, and what their patches copy. Default 256 MB (2^28). */
  readonly maxRunBytes?: number;
  /** Events that the agent emits in one run. Default 2,000,000. */
  readonly maxRunEvents?: number;
  /** Of all runs of a thread, those of other branches included. Default 1 GB (2^30). */
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

const NAMES: Names<EventLimits> = {
  maxDepth: true,
  maxEventBytes: true,
  maxPatchOperations: true,
  maxCopiedBytes: true,
  maxRunBytes: true,
  maxRunEvents: true,
  maxThreadBytes: true,
};

/** Every reader has these, so none may accept more than the others. */
const FIXED: ReadonlySet<string> = new Set<keyof EventLimits>(["maxDepth", "maxPatchOperations", "maxCopiedBytes"]);

/** @throws RunnerError `invalid-input`, also for limits that there are not */
export function eventLimits(given: EventLimits = {}): Required<EventLimits> {
  checkNames(given, NAMES, { of: "The runner", within: "eventLimits" });
  const limits = { ...DEFAULTS };
  // As they are read: inherited ones count, too.
  for (const name of Object.keys(DEFAULTS) as (keyof EventLimits)[]) {
    const value = given[name];
    if (value === undefined) continue;
    const field = `eventLimits.${name}`;
    const isFixed = FIXED.has(name);
    const most = DEFAULTS[name];
    checkOption(field, value, { least: 1, endless: !isFixed && name !== "maxEventBytes", ...(isFixed && { most }) });
    limits[name] = value;
  }
  return limits;
}

function checkWeight<T>(
  field: string,
  value: T,
  { maxDepth, maxEventBytes }: Required<EventLimits>,
  mustBeJson = true,
): T {
  const refuse = (must: string): never => {
    throw new RunnerError("invalid-input", { field }, { message: `${field} must ${must}` });
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
  throw new RunnerError("invalid-input", { field }, { message: `${field} has no JSON: ${why}` });
}

/**
 * Looks at what of a request goes into the log or through a check that goes down into it.
 *
 * @returns the request, with the JSON form of each message, answer and state that holds what is no JSON
 * @throws RunnerError `invalid-input`
 */
export function checkRequestWeight(
  input: RunAgentInput,
  persisted: readonly Message[] | undefined,
  limits: Required<EventLimits>,
): { readonly input: RunAgentInput; readonly persisted: readonly Message[] | undefined } {
  const weighed = <T>(field: string, list: T): T =>
    Array.isArray(list) ? (list.map((item, at) => checkWeight(`${field}[${at}]`, item as unknown, limits)) as T) : list; // as long a list
  // Never stored unless the agent itself records them: their size is the caller's affair.
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
