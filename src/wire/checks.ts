import { invalidInput } from "../run/errors.js";
import { flawOf } from "../run/json.js";
import type { ThreadUpdate } from "../run/types.js";
import type {
  AttachRequest,
  MessagePageQuery,
  RunEventsRequest,
  RunListQuery,
  RunRequest,
  StopCall,
  ThreadListQuery,
  ToolCallAnswer,
  ToolCallClaim,
} from "./shapes.js";

/** Calls from tabs are checked here, once, and trusted afterwards. Errors: RunnerError `invalid-input`. */
function refuse(field: string, must: string): never {
  throw invalidInput(field, `${field} must ${must}`);
}

type Fields = Readonly<Record<string, unknown>>;
export type Check = (fields: Fields, field: string) => void;

export function fieldsOf(value: unknown, name: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return refuse(name, "be an object");
  return value as Fields;
}

export const id: Check = (fields, field) => {
  if (typeof fields[field] !== "string" || fields[field] === "") refuse(field, "be a string that is not empty");
};

/** AG-UI allows any string as the id of a message, even "". */
const messageId: Check = (fields, field) => {
  if (typeof fields[field] !== "string") refuse(field, "be a string");
};

export const optional =
  (check: Check): Check =>
  (fields, field) => {
    if (fields[field] !== undefined) check(fields, field);
  };

export const optionalOf = (type: "boolean" | "number" | "string"): Check =>
  optional((fields, field) => {
    if (typeof fields[field] !== type) refuse(field, `be a ${type} where it is given`);
  });

export const oneOf =
  (...choices: readonly string[]): Check =>
  (fields, field) => {
    if (!choices.includes(fields[field] as string)) refuse(field, `be one of ${choices.join(", ")}`);
  };

const isWhole = (value: unknown, least: number): boolean => Number.isSafeInteger(value) && (value as number) >= least;

function checkCursor(value: unknown, name: string): void {
  if (value === undefined) return;
  const cursor = fieldsOf(value, name);
  for (const field of ["runIndex", "seq", "epoch"]) {
    const least = field === "epoch" ? 0 : -1;
    if (!isWhole(cursor[field], least)) refuse(`${name}.${field}`, `be a whole number, at least ${least}`);
  }
}

/** @param name the name of the object in error messages */
export function checker<T extends object>(name: string, checks: { readonly [F in keyof T]?: Check }) {
  return (given: T): T => {
    const fields = fieldsOf(given, name);
    for (const [field, check] of Object.entries<Check>(checks as Readonly<Record<string, Check>>)) check(fields, field);
    return given;
  };
}

type Named = { readonly threadId: string };

export const checkThread = checker<Named>("request", { threadId: id });

/** The runner checks the changes. */
export const checkThreadUpdate = checker<Named & { readonly changes: ThreadUpdate }>("request", { threadId: id });

export const checkStop = checker<StopCall>("request", { threadId: id, agentId: optional(id), runId: optional(id) });

/** The runner checks numbers and statuses by its own rules. */
export const checkRunQuery = checker<RunListQuery & Named>("query", { threadId: id });

/** The runner checks the rest of a request for events. */
export const checkNamedRun = checker<RunEventsRequest>("request", { runId: id, threadId: optional(id) });

/** Another branch is taken up. `runIndex` tells runs of one id apart. */
export interface ActivateRunCall {
  readonly threadId: string;
  readonly runId: string;
  readonly runIndex?: number;
}

export const checkActivation = checker<ActivateRunCall>("request", {
  threadId: id,
  runId: id,
  runIndex: optionalOf("number"),
});

export const checkThreadQuery = checker<ThreadListQuery>("query", {
  limit: optionalOf("number"),
  agentId: optionalOf("string"),
  archived: optionalOf("boolean"),
});

export const checkMessagePageQuery = checker<MessagePageQuery>("query", {
  threadId: id,
  before: optional(messageId),
  limit: optionalOf("number"),
});

export const checkToolCallClaim = checker<ToolCallClaim>("request", {
  threadId: id,
  toolCallId: messageId,
  token: id,
  once: optionalOf("boolean"),
  again: optionalOf("boolean"),
});

export const checkToolCallAnswer = checker<ToolCallAnswer>("request", {
  threadId: id,
  toolCallId: messageId,
  token: id,
  by: oneOf("handler", "user"),
  content: messageId,
  error: optionalOf("string"),
  followUp: optionalOf("boolean"),
});

export const checkAttach = checker<AttachRequest>("request", {
  threadId: id,
  follow: optionalOf("boolean"),
  holds: optionalOf("boolean"),
  named: optionalOf("boolean"),
  agentId: optional(id),
  runId: optional(id),
  replay: optional(oneOf("snapshot", "events", "last-run")),
  limit: optional(({ limit }) => {
    if (!isWhole(limit, 1)) refuse("limit", "be a whole number, at least 1");
  }),
  after: ({ after }) => checkCursor(after, "after"),
});

export function checkRun(request: RunRequest): RunRequest {
  const fields = fieldsOf(request, "request");
  id(fields, "threadId");
  id(fields, "agentId");
  const input = fieldsOf(fields["input"], "input");
  id(input, "runId");
  for (const field of ["messages", "tools", "context"]) {
    if (!Array.isArray(input[field])) refuse(`input.${field}`, "be an array");
  }
  const { persistedInputMessages, partial, cut } = fields;
  if (persistedInputMessages !== undefined && !Array.isArray(persistedInputMessages)) {
    refuse("persistedInputMessages", "be an array where it is given");
  }
  // All of it, because a middleware may convert it to JSON before the runner checks it.
  const flaw = flawOf(fields);
  if (flaw !== undefined) throw invalidInput("input", `input ${flaw}`);
  if (partial !== undefined) {
    const said = fieldsOf(partial, "partial");
    optionalOf("boolean")(said, "stateSet");
    checkCursor(said["at"], "partial.at");
  }
  if (cut !== undefined && !(Array.isArray(cut) && cut.every((item) => typeof item === "string"))) {
    refuse("cut", "be an array of strings");
  }
  optionalOf("string")(fields, "branchBefore");
  optionalOf("boolean")(fields, "afterToolCalls");
  optional(oneOf("reject", "queue", "supersede"))(fields, "onBusy");
  return request;
}
