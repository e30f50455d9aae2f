import { RunnerError } from "../run/errors.js";
import { flawOf } from "../run/json.js";
import type {
  AttachRequest,
  MessagePageQuery,
  NamedRun,
  RunEventsRequest,
  RunListQuery,
  RunRequest,
  StopCall,
  ThreadListQuery,
} from "./shapes.js";

/** What arrives from a tab is checked here, once, and trusted behind it. Errors: RunnerError `invalid-input`. */
function refuse(field: string, must: string): never {
  throw new RunnerError("invalid-input", { field }, { message: `${field} must ${must}` });
}

type Fields = Record<string, unknown>;

function fieldsOf(value: unknown, field: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return refuse(field, "be an object");
  return value as Fields;
}

function checkId(fields: Fields, field: string): void {
  const id = fields[field];
  if (typeof id !== "string" || id === "") refuse(field, "be a string that is not empty");
}

/** AG-UI lets a message have any string for its id, "" too. */
function checkMessageId(fields: Fields, field: string): void {
  if (typeof fields[field] !== "string") refuse(field, "be a string");
}

function checkOptional(fields: Fields, field: string, type: "boolean" | "number" | "string" | "object"): void {
  if (fields[field] !== undefined && typeof fields[field] !== type) refuse(field, `be a ${type} where it is given`);
}

const isStrings = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === "string");

function checkCursor(value: unknown, name: string): void {
  if (value === undefined) return;
  const cursor = fieldsOf(value, name);
  for (const field of ["runIndex", "seq", "epoch"]) {
    const least = field === "epoch" ? 0 : -1;
    if (!Number.isSafeInteger(cursor[field]) || (cursor[field] as number) < least) {
      refuse(`${name}.${field}`, `be a whole number, at least ${least}`);
    }
  }
}

export function checkRun(request: RunRequest): RunRequest {
  const fields = fieldsOf(request, "request");
  checkId(fields, "threadId");
  checkId(fields, "agentId");
  const input = fieldsOf(fields["input"], "input");
  checkId(input, "runId");
  for (const field of ["messages", "tools", "context"]) {
    if (!Array.isArray(input[field])) refuse(`input.${field}`, "be an array");
  }
  if (fields["persistedInputMessages"] !== undefined && !Array.isArray(fields["persistedInputMessages"])) {
    refuse("persistedInputMessages", "be an array where it is given");
  }
  // A middleware may have all of it made into JSON, before the runner looks at it.
  const flaw = flawOf(fields);
  if (flaw !== undefined) throw new RunnerError("invalid-input", { field: "input" }, { message: `input ${flaw}` });
  if (fields["partial"] !== undefined) {
    const partial = fieldsOf(fields["partial"], "partial");
    checkOptional(partial, "stateSet", "boolean");
    checkCursor(partial["at"], "partial.at");
  }
  if (fields["cut"] !== undefined && !isStrings(fields["cut"])) refuse("cut", "be an array of strings");
  checkOptional(fields, "branchBefore", "string");
  return request;
}

export function checkAttach(request: AttachRequest): AttachRequest {
  const fields = fieldsOf(request, "request");
  checkId(fields, "threadId");
  checkOptional(fields, "follow", "boolean");
  checkOptional(fields, "holds", "boolean");
  if (fields["agentId"] !== undefined) checkId(fields, "agentId");
  if (fields["runId"] !== undefined) checkId(fields, "runId");
  if (![undefined, "snapshot", "events", "last-run"].includes(fields["replay"] as undefined))
    refuse("replay", "be snapshot, events or last-run");
  const { limit } = fields;
  if (limit !== undefined && (!Number.isSafeInteger(limit) || (limit as number) < 1)) {
    refuse("limit", "be a whole number, at least 1");
  }
  checkCursor(fields["after"], "after");
  return request;
}

export function checkThread(request: { readonly threadId: string }): { readonly threadId: string } {
  checkId(fieldsOf(request, "request"), "threadId");
  return request;
}

export function checkStop(request: StopCall): StopCall {
  const fields = fieldsOf(request, "request");
  checkId(fields, "threadId");
  if (fields["agentId"] !== undefined) checkId(fields, "agentId");
  if (fields["runId"] !== undefined) checkId(fields, "runId");
  return request;
}

/** Numbers and statuses are the runner's to check: it has rules of its own for them. */
export function checkRunQuery<T extends RunListQuery & { readonly threadId: string }>(query: T): T {
  checkId(fieldsOf(query, "query"), "threadId");
  return query;
}

export function checkNamedRun<T extends NamedRun | RunEventsRequest>(request: T): T {
  const fields = fieldsOf(request, "request");
  checkId(fields, "runId");
  if (fields["threadId"] !== undefined) checkId(fields, "threadId");
  return request;
}

export function checkThreadQuery(query: ThreadListQuery): ThreadListQuery {
  const fields = fieldsOf(query, "query");
  checkOptional(fields, "limit", "number");
  checkOptional(fields, "before", "number");
  checkOptional(fields, "agentId", "string");
  checkOptional(fields, "archived", "boolean");
  return query;
}

export function checkMessagePageQuery(query: MessagePageQuery): MessagePageQuery {
  const fields = fieldsOf(query, "query");
  checkId(fields, "threadId");
  if (fields["before"] !== undefined) checkMessageId(fields, "before");
  checkOptional(fields, "limit", "number");
  return query;
}
