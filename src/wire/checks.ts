import { RunnerError } from "../run/errors.js";
import type { AttachRequest, RunRequest, ThreadListQuery } from "./shapes.js";

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

function checkOptional(fields: Fields, field: string, type: "boolean" | "number" | "string" | "object"): void {
  if (fields[field] !== undefined && typeof fields[field] !== type) refuse(field, `be a ${type} where it is given`);
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
  if (fields["partial"] !== undefined) checkOptional(fieldsOf(fields["partial"], "partial"), "stateSet", "boolean");
  return request;
}

export function checkAttach(request: AttachRequest): AttachRequest {
  const fields = fieldsOf(request, "request");
  checkId(fields, "threadId");
  checkOptional(fields, "follow", "boolean");
  if (![undefined, "snapshot", "events"].includes(fields["replay"] as undefined))
    refuse("replay", "be snapshot or events");
  if (fields["after"] !== undefined) {
    const after = fieldsOf(fields["after"], "after");
    for (const field of ["runIndex", "seq", "epoch"]) {
      const least = field === "epoch" ? 0 : -1;
      if (!Number.isSafeInteger(after[field]) || (after[field] as number) < least) {
        refuse(`after.${field}`, `be a whole number, at least ${least}`);
      }
    }
  }
  return request;
}

export function checkThread(request: { readonly threadId: string }): { readonly threadId: string } {
  checkId(fieldsOf(request, "request"), "threadId");
  return request;
}

export function checkStop(request: { readonly threadId: string; readonly runId?: string }): typeof request {
  const fields = fieldsOf(request, "request");
  checkId(fields, "threadId");
  if (fields["runId"] !== undefined) checkId(fields, "runId");
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
