import type { Message, RunAgentInput } from "@ag-ui/client";
import { MessageSchema, ResumeEntrySchema, ToolSchema } from "@ag-ui/core/schemas";
import { RunnerError } from "../run/errors.js";
import type { ConcurrentRunPolicy } from "./parts.js";

function refuse(field: string, must: string): never {
  throw new RunnerError("invalid-input", { field }, { message: `${field} must ${must}` });
}

/** @throws RunnerError `invalid-input` */
export function checkId(name: "threadId" | "runId", id: unknown): void {
  if (typeof id !== "string" || id === "") refuse(name, "be a string that is not empty");
}

/** A copy that whoever asked cannot change any more. */
function own<T>(value: T, field: string): T {
  try {
    return structuredClone(value);
  } catch {
    return refuse(field, "be plain data");
  }
}

interface Schema {
  safeParse(value: unknown): { success: boolean };
}

function checkList<T>(list: readonly T[], field: string, schema: Schema): void {
  if (!Array.isArray(list)) refuse(field, "be an array");
  list.forEach((item, at) => {
    if (!schema.safeParse(item).success) refuse(`${field}[${at}]`, "have the shape that AG-UI gives it");
  });
}

/**
 * Messages as the log may keep them. They become part of what every reader is handed, and readers parse it: one that
 * AG-UI does not know would make the thread unreadable for good.
 *
 * @returns a copy
 * @throws RunnerError `invalid-input`
 */
export function checkMessages(messages: readonly Message[], field = "messages"): Message[] {
  checkList(messages, field, MessageSchema);
  return own([...messages], field);
}

/**
 * @returns the input, with a copy of what the log keeps of it
 * @throws RunnerError `invalid-input`
 */
export function checkInput(input: RunAgentInput): RunAgentInput {
  checkId("runId", input.runId);
  checkList(input.tools, "input.tools", ToolSchema);
  if (!Array.isArray(input.context)) refuse("input.context", "be an array");
  if (input.resume !== undefined) checkList(input.resume, "input.resume", ResumeEntrySchema);
  if (input.parentRunId !== undefined && typeof input.parentRunId !== "string")
    refuse("input.parentRunId", "be a string");
  return {
    ...input,
    messages: checkMessages(input.messages, "input.messages"),
    state: own(input.state, "input.state"),
    ...(input.resume !== undefined && { resume: own(input.resume, "input.resume") }),
  };
}

const POLICIES: ReadonlySet<unknown> = new Set<ConcurrentRunPolicy>(["throw", "supersede", "queue"]);

/** @throws RunnerError `invalid-input` */
export function checkPolicy(policy: unknown): void {
  if (!POLICIES.has(policy)) refuse("onConcurrentRun", "be throw, supersede or queue");
}
