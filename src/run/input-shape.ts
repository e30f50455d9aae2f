/*
 * The shapes of AG-UI 1.0 that a run's input is made of (a test compares them with the schemas of `@ag-ui/core`).
 *
 * Those schemas are not used here: they collect every issue, so that a megabyte of `[0,0,…]` costs seconds and hundreds
 * of megabytes, and copy every object. Here the search ends with the first issues, and costs less than parsing the JSON.
 */

/** What is wrong with a value, and where. */
export interface Issue {
  readonly path: readonly PropertyKey[];
  /** The type that it must have, where that is what is wrong. */
  readonly expected?: string;
}

/** Finds what is wrong with a value. */
export type Check = (value: unknown, search: Search) => void;

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

/** @param most so many issues are looked for */
export function issuesOf(value: unknown, check: Check, most: number): readonly Issue[] {
  const search = new Search(most);
  check(value, search);
  return search.issues.slice(0, most);
}

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
  if (!isFields(value)) search.add();
};

/** Any value: what is optional may be absent, and never null. */
const present: Check = (value, search) => {
  if (value === null) search.add();
};

const listOf =
  (item: Check): Check =>
  (value, search) => {
    if (!Array.isArray(value)) return search.add("array");
    for (let at = 0; at < value.length && !search.isOver; at++) search.within(at, value[at], item);
  };

type Checks = Readonly<Record<string, Check>>;

/** Fields that are not named here may be anything. */
function object(required: Checks, optional: Checks = {}): Check {
  const needed = Object.entries(required);
  const possible = Object.entries(optional);
  return (value, search) => {
    if (!isFields(value)) return search.add("object");
    for (const [field, check] of needed) search.within(field, value[field], check);
    for (const [field, check] of possible) {
      if (value[field] !== undefined) search.within(field, value[field], check);
    }
  };
}

/** One of several shapes, told by a field. */
function byField(field: string, shapes: Checks): Check {
  const unknown = oneOf();
  return (value, search) => {
    if (!isFields(value)) return search.add("object");
    const tag = value[field];
    const shape = typeof tag === "string" && Object.hasOwn(shapes, tag) ? shapes[tag]! : undefined;
    if (shape === undefined) search.within(field, tag, unknown);
    else shape(value, search);
  };
}

const metadata = record;
const source = byField("type", {
  data: object({ value: text, mimeType: text }),
  url: object({ value: text }, { mimeType: text }),
  file: object({ value: text }, { provider: text, mimeType: text }),
});
const media = object({ source }, { id: text, metadata: present });
const parts = listOf(
  byField("type", {
    text: object({ text }, { id: text, metadata: present }),
    image: media,
    audio: media,
    video: media,
    document: media,
  }),
);
const content: Check = (value, search) => {
  if (Array.isArray(value)) parts(value, search);
  else if (typeof value !== "string") search.add();
};
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
    tools: listOf(TOOL),
    context: listOf(CONTEXT),
    forwardedProps: present,
    resume: listOf(RESUME_ENTRY),
  },
);
