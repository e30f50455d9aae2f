/*
 * The shapes of AG-UI 1.0 that a run's input is made of (a test compares them with the schemas of `@ag-ui/core`).
 *
 * Those schemas are not used here: they copy every object and collect every issue, so a megabyte of `[0,0,…]` costs
 * seconds and hundreds of megabytes. This search stops at the first issues and costs less than parsing the JSON.
 */

import { isRecord } from "./json.js";
import { printable } from "./printable.js";

/** What is wrong with a value, and where. */
export interface Issue {
  readonly path: readonly PropertyKey[];
  /** The type that it must have, where that is what is wrong. */
  readonly expected?: string;
}

/** Finds what is wrong with a value. */
export interface Check {
  (value: unknown, search: Search): void;
  /** The value without unknown fields; the value itself where it has none. */
  readonly keep?: Keep;
}

/**
 * @param found called with the name of each field that is left out
 * @param tag the field that selects the shape: it is known
 * @returns {@link UNKNOWN} where the whole value is unknown
 */
type Keep = (value: unknown, found: (name: string) => void, tag?: string) => unknown;

/** Most names in a warning. */
const NAMES = 10;

/** Collects the names of the fields that are left out of an input. */
export class LeftOut {
  private readonly names = new Set<string>();

  readonly note = (name: string): void => {
    if (this.names.size < NAMES) this.names.add(printable(name, 40));
  };

  /** @param warn called where something was left out */
  tell(warn: (message: string, names: readonly string[]) => void): void {
    if (this.names.size === 0) return;
    warn("Fields or parts of a run's input that AG-UI does not describe are left out", [...this.names]);
  }
}

/** A value that only a newer version of AG-UI may define. */
const UNKNOWN = Symbol("unknown");

class Search {
  readonly issues: Issue[] = [];
  private readonly path: PropertyKey[] = [];

  constructor(private readonly most: number) {}

  get isOver(): boolean {
    return this.issues.length >= this.most;
  }

  add(expected?: string): void {
    this.issues.push({ path: [...this.path], ...(expected !== undefined && { expected }) });
  }

  within(key: PropertyKey, value: unknown, check: Check): void {
    this.path.push(key);
    check(value, this);
    this.path.pop();
  }
}

/** @param most stops after this many issues */
export function issuesOf(value: unknown, check: Check, most: number): readonly Issue[] {
  const search = new Search(most);
  check(value, search);
  return search.issues.slice(0, most);
}

/**
 * A value without what this version of AG-UI does not define: a newer peer may have sent it. As AG-UI demands, an unknown
 * field is dropped, and an unknown member of a union is dropped with the field or list element that holds it. What is
 * known but malformed stays, for {@link issuesOf}.
 *
 * @param found called with the name of each field that is left out
 */
export function known(value: unknown, check: Check, found: (name: string) => void = () => undefined): unknown {
  const kept = check.keep === undefined ? value : check.keep(value, found);
  return kept === UNKNOWN ? value : kept;
}

const keptOf = (check: Check, value: unknown, found: (name: string) => void): unknown =>
  check.keep === undefined ? value : check.keep(value, found);

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const text: Check = (value, search) => {
  if (typeof value !== "string") search.add("string");
};

const oneOf =
  (...texts: readonly unknown[]): Check =>
  (value, search) => {
    if (!texts.includes(value)) search.add();
  };

const record: Check = (value, search) => {
  if (!isRecord(value)) search.add();
};

/** Any value but null: an optional field is absent or set. */
const present: Check = (value, search) => {
  if (value === null) search.add();
};

function listOf(item: Check): Check {
  const check: Check = (value, search) => {
    if (!Array.isArray(value)) return search.add("array");
    for (let at = 0; at < value.length && !search.isOver; at++) search.within(at, value[at], item);
  };
  const keep: Keep = (value, found) => {
    if (!Array.isArray(value)) return value;
    const kept: unknown[] = [];
    let isWhole = true;
    for (let at = 0; at < value.length; at++) {
      const given: unknown = value[at];
      // Every list here is of objects; others are refused unchanged. A sparse one may have any length: it is not walked.
      if (!isFields(given)) return value;
      const inner = keptOf(item, given, found);
      isWhole &&= inner === given;
      if (inner !== UNKNOWN) kept.push(inner);
    }
    return isWhole ? value : kept;
  };
  return item.keep === undefined ? check : Object.assign(check, { keep });
}

type Checks = Readonly<Record<string, Check>>;

/** Fields that are not named here may be anything. */
function object(required: Checks, optional: Checks = {}): Check {
  const needed = Object.entries(required);
  const possible = Object.entries(optional);
  const checks = new Map([...needed, ...possible]);
  const keep: Keep = (value, found, tag) => {
    if (!isFields(value)) return value;
    const kept: Record<string, unknown> = {};
    let isWhole = true;
    for (const [field, given] of Object.entries(value)) {
      const check = field === tag ? present : checks.get(field);
      if (check === undefined) found(field);
      const inner = check === undefined ? UNKNOWN : keptOf(check, given, found);
      if (inner === UNKNOWN && Object.hasOwn(required, field)) return UNKNOWN;
      isWhole &&= inner === given;
      if (inner !== UNKNOWN) kept[field] = inner;
    }
    return isWhole ? value : kept;
  };
  return Object.assign(checkOf(needed, possible), { keep });
}

function checkOf(
  needed: readonly (readonly [string, Check])[],
  possible: readonly (readonly [string, Check])[],
): Check {
  return (value, search) => {
    if (!isFields(value)) return search.add("object");
    for (const [field, check] of needed) search.within(field, value[field], check);
    for (const [field, check] of possible) {
      if (value[field] !== undefined) search.within(field, value[field], check);
    }
  };
}

/**
 * One of several shapes, selected by a field.
 *
 * @param grows whether a later version may have a shape of this name
 */
function byField(field: string, shapes: Checks, grows: (tag: string) => boolean = () => false): Check {
  const unknown = oneOf();
  const shapeOf = (tag: unknown): Check | undefined =>
    typeof tag === "string" && Object.hasOwn(shapes, tag) ? shapes[tag] : undefined;
  const check: Check = (value, search) => {
    if (!isFields(value)) return search.add("object");
    const tag = value[field];
    const shape = shapeOf(tag);
    if (shape === undefined) search.within(field, tag, unknown);
    else shape(value, search);
  };
  const keep: Keep = (value, found) => {
    if (!isFields(value)) return value;
    const tag = value[field];
    const shape = shapeOf(tag);
    if (shape?.keep !== undefined) return shape.keep(value, found, field);
    if (typeof tag !== "string" || !grows(tag)) return value;
    found(field);
    return UNKNOWN;
  };
  return Object.assign(check, { keep });
}

const metadata = record;
const source = byField(
  "type",
  {
    data: object({ value: text, mimeType: text }),
    url: object({ value: text }, { mimeType: text }),
    file: object({ value: text }, { provider: text, mimeType: text }),
  },
  () => true,
);
const media = object({ source }, { id: text, metadata: present });
const parts = listOf(
  byField(
    "type",
    {
      text: object({ text }, { id: text, metadata: present }),
      image: media,
      audio: media,
      video: media,
      document: media,
    },
    // A part of older versions: one that was not upgraded is malformed.
    (tag) => tag !== "binary",
  ),
);
const content: Check = Object.assign(
  (value: unknown, search: Search) => {
    if (Array.isArray(value)) parts(value, search);
    else if (typeof value !== "string") search.add();
  },
  { keep: parts.keep! },
);
const toolCall = object(
  { id: text, type: oneOf("function"), function: object({ name: text, arguments: text }) },
  { encryptedValue: text, metadata },
);
const spoken: Checks = { subagentRunId: text, name: text, encryptedValue: text, metadata };

export const MESSAGE = byField("role", {
  developer: object({ id: text, content: text }, spoken),
  system: object({ id: text, content: text }, spoken),
  assistant: object({ id: text }, { ...spoken, content: text, toolCalls: listOf(toolCall) }),
  user: object({ id: text, content }, spoken),
  tool: object(
    { id: text, content, toolCallId: text },
    { subagentRunId: text, error: text, encryptedValue: text, metadata },
  ),
  activity: object({ id: text, activityType: text, content: record }, { subagentRunId: text, metadata }),
  reasoning: object({ id: text, content: text }, { subagentRunId: text, encryptedValue: text, metadata }),
});
export const TOOL = object({ name: text, description: text }, { parameters: present, metadata });
export const CONTEXT = object({ description: text, value: text });
export const RESUME_ENTRY = object(
  { interruptId: text, status: oneOf("resolved", "cancelled") },
  { payload: present, metadata },
);
export const INPUT = object(
  { threadId: text, runId: text, messages: listOf(MESSAGE) },
  {
    protocolVersion: text,
    parentRunId: text,
    state: () => undefined,
    tools: listOf(TOOL),
    context: listOf(CONTEXT),
    forwardedProps: present,
    resume: listOf(RESUME_ENTRY),
  },
);
