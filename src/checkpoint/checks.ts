import { RunnerError } from "../run/errors.js";
import { checkNames, COUNT, FLAG, TEXT, type Names } from "../run/options.js";
import type { Checkpoint, CheckpointOrigin } from "./checkpoint.js";
import type { CheckpointListQuery, CheckpointPatch, CheckpointPlace, PruneQuery } from "./checkpoint-store.js";

/*
 * Checks input before it is stored and records before they are trusted. The contents of states, results and snapshots
 * belong to the graph and are not checked.
 */

type Check = (value: unknown) => boolean;

/**
 * An object with fields: not an array, Map, Date or typed array, whose content is not in its fields. Those are kept
 * unchanged where the content belongs to the graph.
 */
export function hasFields(value: unknown): value is Record<string, unknown> {
  try {
    return Object.prototype.toString.call(value) === "[object Object]";
  } catch {
    // A revoked Proxy.
    return false;
  }
}
export const isId = (value: unknown): value is string => typeof value === "string" && value !== "";
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
export const isTime = (value: unknown): value is number => Number.isFinite(value);
const isAbsentOr =
  (is: Check): Check =>
  (value) =>
    value === undefined || is(value);
const isStrings: Check = (value) => Array.isArray(value) && value.every((item) => typeof item === "string");

export const isOrigin = (value: unknown): value is CheckpointOrigin =>
  hasFields(value) && isId(value["checkpointId"]) && isId(value["runId"]);

const ID = [isId, "be a string that is not empty"] as const;
const PLAIN = "be a plain object";
const STRINGS = "be an array of strings";

const FIELDS: readonly (readonly [field: string, is: Check, must: string])[] = [
  ["id", ...ID],
  ["graphId", ...ID],
  ["runId", ...ID],
  ["nodeId", ...ID],
  ["timestamp", isTime, "be a finite number"],
  ["state", hasFields, PLAIN],
  [
    "nodeResults",
    (value) => hasFields(value) && Object.values(value).every(hasFields),
    "be a plain object of plain objects",
  ],
  ["visitedNodes", isStrings, STRINGS],
  ["skippedNodes", isAbsentOr(isStrings), STRINGS],
  ["pendingEdges", isStrings, STRINGS],
  ["memorySnapshot", isAbsentOr(hasFields), PLAIN],
  ["forkedFrom", isAbsentOr(isOrigin), "have a checkpointId and a runId"],
];

const wrongField = (checkpoint: unknown): (typeof FIELDS)[number] | undefined =>
  hasFields(checkpoint) ? FIELDS.find(([field, is]) => !is(checkpoint[field])) : FIELDS[0];

export const isCheckpoint = (value: unknown): value is Checkpoint => wrongField(value) === undefined;

function refuse(field: string, must: string, cause?: unknown): never {
  throw new RunnerError("invalid-input", { field }, { message: `${field} must ${must}`, cause });
}

function checkObject(field: string, value: unknown): void {
  if (!hasFields(value)) refuse(field, PLAIN);
}

/** Only a cyclic value is nested this deeply. */
const DEEPEST = 8;

/** The deepest field that can be identified as not cloneable. */
function unclonable(value: unknown, field: string, depth = 0): string {
  if (!hasFields(value) || depth === DEEPEST) return field;
  for (const key of Object.keys(value)) {
    const inside = `${field}.${key}`;
    try {
      const part = value[key];
      try {
        structuredClone(part);
      } catch {
        return unclonable(part, inside, depth + 1);
      }
    } catch {
      // The caller's getter threw.
      return inside;
    }
  }
  return field;
}

/** IndexedDB stores less than `structuredClone` copies: no shared memory, no compiled module. */
export function refuseUnstorable(field: string, cause: unknown): never {
  return refuse(field, "hold only what can be cloned and stored", cause);
}

/** Clones the whole at once: a value referenced twice stays one value. */
function own<T>(value: T, field: string): T {
  try {
    return structuredClone(value);
  } catch (error) {
    return refuse(unclonable(value, field), "be what can be cloned", error);
  }
}

/** @throws RunnerError `invalid-input` */
export function checkCheckpoint(checkpoint: Checkpoint): Checkpoint {
  const wrong = wrongField(checkpoint);
  if (wrong !== undefined) refuse(`checkpoint.${wrong[0]}`, wrong[2]);
  return checkpoint;
}

/**
 * @returns a copy
 * @throws RunnerError `invalid-input`
 */
export function ownCheckpoint(checkpoint: Checkpoint): Checkpoint {
  checkObject("checkpoint", checkpoint);
  return checkCheckpoint(own(checkpoint, "checkpoint"));
}

/**
 * @returns a copy of the known fields
 * @throws RunnerError `invalid-input`
 */
export function ownPatch(patch: CheckpointPatch | undefined): CheckpointPatch {
  if (patch === undefined) return {};
  checkObject("patchState", patch);
  // Listed one by one: a GraphState has other fields, which may not be cloneable.
  const { input, scratch, artifacts, diagnostics } = patch;
  return own({ input, scratch, artifacts, diagnostics }, "patchState");
}

/** @throws RunnerError `invalid-input` */
export function checkText(field: string, value: unknown): void {
  if (typeof value !== "string") refuse(field, "be a string");
}

const isPlace: Check = (value) =>
  hasFields(value) && isTime(value["timestamp"]) && (value["turn"] === undefined || isCount(value["turn"]));

/** A query that was checked. */
export interface ListRange {
  readonly runId: string | undefined;
  /** Infinity: all. */
  readonly limit: number;
  readonly before: CheckpointPlace | undefined;
  readonly after: CheckpointPlace | undefined;
}

const PLACE = [isPlace, "a place: a timestamp, and a turn where there is one"] as const;

const LIST_QUERY: Names<CheckpointListQuery> = {
  runId: TEXT,
  limit: COUNT,
  before: PLACE,
  after: PLACE,
};

/** @throws RunnerError `invalid-input` */
export function checkListQuery(query: CheckpointListQuery = {}): ListRange {
  checkObject("query", query);
  // The object belongs to the caller and may have getters: what is checked is what was read.
  const read = { ...query };
  checkNames(read, LIST_QUERY, { of: "list" });
  const { runId, limit, before, after } = read;
  return { runId, limit: limit ?? Infinity, before: ownPlace(before), after: ownPlace(after) };
}

const ownPlace = (place: CheckpointPlace | undefined): CheckpointPlace | undefined =>
  place && { timestamp: place.timestamp, turn: place.turn };

/** A query that was checked. */
export interface PruneRange {
  readonly runId: string | undefined;
  readonly keep: number;
  /** Infinity: no upper bound. */
  readonly olderThan: number;
}

const PRUNE_QUERY: Names<PruneQuery> = {
  keep: [isCount, "a whole number, at least 0"],
  olderThan: [isTime, "a finite number"],
  runId: TEXT,
  evenLast: FLAG,
};

/** @throws RunnerError `invalid-input` */
export function checkPruneQuery(query: PruneQuery): PruneRange {
  checkObject("query", query);
  const read = { ...query };
  checkNames(read, PRUNE_QUERY, { of: "prune" });
  const { keep, olderThan, runId, evenLast } = read;
  if (keep === undefined && olderThan === undefined) refuse("keep", "be given, or olderThan");
  return { runId, keep: Math.max(keep ?? 0, evenLast === true ? 0 : 1), olderThan: olderThan ?? Infinity };
}
