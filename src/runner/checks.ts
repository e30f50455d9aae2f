import type { Message, RunAgentInput } from "@ag-ui/client";
import { invalidInput } from "../run/errors.js";
import { CONTEXT, issuesOf, known, MESSAGE, RESUME_ENTRY, TOOL, type Check } from "../run/input-shape.js";
import { commandOf } from "../run/interrupts.js";
import { cloneJson, flawOf } from "../run/json.js";
import { checkKind, FLAG, ID } from "../run/options.js";
import type { ThreadUpdate } from "../run/types.js";

function refuse(field: string, must: string): never {
  throw invalidInput(field, `${field} must ${must}`);
}

/** @throws RunnerError `invalid-input` */
export const checkId = (name: "threadId" | "runId", id: unknown): void => checkKind(name, id, ID);

function checkFlaw(value: unknown, field: string): void {
  const flaw = flawOf(value);
  if (flaw !== undefined) throw invalidInput(field, `${field} ${flaw}`);
}

/** A copy that the caller cannot change. */
function own<T>(value: T, field: string): T {
  checkFlaw(value, field);
  try {
    return cloneJson(value);
  } catch {
    return refuse(field, "be plain data");
  }
}

/** @returns the list without the fields that AG-UI does not define: they are dropped, not refused */
function checkList<T>(list: readonly T[], field: string, shape: Check, leftOut?: LeftOut): T[] {
  if (!Array.isArray(list)) return refuse(field, "be an array");
  const kept: T[] = [];
  const { length } = list;
  for (let at = 0; at < length; at++) {
    const item = known(list[at], shape, leftOut) as T; // T without the unknown fields
    if (issuesOf(item, shape, 1).length > 0) refuse(`${field}[${at}]`, "have the shape that AG-UI gives it");
    kept.push(item);
  }
  return kept;
}

/** Called with the name of each field that is left out of an input. */
type LeftOut = (field: string) => void;

/**
 * Checks messages before they go into the log. Every reader parses them, so one that AG-UI does not know would make the
 * thread unreadable for good.
 *
 * @returns a copy
 * @throws RunnerError `invalid-input`
 */
export function checkMessages(messages: readonly Message[], field = "messages", leftOut?: LeftOut): Message[] {
  return own(checkList(messages, field, MESSAGE, leftOut), field);
}

/**
 * @returns the input, with copies of the parts that the log keeps
 * @throws RunnerError `invalid-input`
 */
export function checkInput(input: RunAgentInput, leftOut?: LeftOut): RunAgentInput {
  checkId("runId", input.runId);
  const tools = checkList(input.tools, "input.tools", TOOL, leftOut);
  checkFlaw(tools, "input.tools");
  const context = checkList(input.context, "input.context", CONTEXT, leftOut);
  checkFlaw(context, "input.context");
  const given = input.resume ?? undefined;
  const resume = given === undefined ? given : checkList(given, "input.resume", RESUME_ENTRY, leftOut);
  if (input.parentRunId !== undefined && typeof input.parentRunId !== "string")
    refuse("input.parentRunId", "be a string");
  return {
    ...input,
    tools,
    context,
    messages: checkMessages(input.messages, "input.messages", leftOut),
    state: own(input.state, "input.state"),
    ...(resume !== undefined && { resume: own(resume, "input.resume") }),
  };
}

/**
 * Identifies a request when its run id is sent again. FNV-1a over the request's JSON, 64 bits.
 *
 * @throws RunnerError `invalid-input` where the messages have no JSON form
 */
export function fingerprint(input: RunAgentInput): string {
  const text = jsonOfRequest(input);
  let a = 0x811c9dc5;
  let b = 0xcbf29ce4;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ (code + at), 0x01000193);
  }
  return `${(a >>> 0).toString(16)}${(b >>> 0).toString(16)}:${text.length}`;
}

function jsonOfRequest(input: RunAgentInput): string {
  try {
    const command = commandOf(input);
    return JSON.stringify([input.messages, input.resume ?? null, ...(command === undefined ? [] : [command])]);
  } catch {
    return refuse("input.messages", "be JSON");
  }
}

/**
 * A number in a query, rounded down and clamped to `most`; at least 0, or -1 where that is the preset.
 *
 * @throws RunnerError `invalid-input`
 */
export function checkNumber(field: string, value: unknown, preset: number, most = Number.MAX_SAFE_INTEGER): number {
  if (value === undefined) return preset;
  if (typeof value !== "number" || Number.isNaN(value)) return refuse(field, "be a number");
  return Math.min(Math.max(Math.min(preset, 0), Math.floor(value)), most);
}

/** Longest title of a thread, in UTF-16 code units, as an input's `maxlength` counts. */
const MAX_TITLE = 200;

function checkTitle(value: unknown): string {
  const title = typeof value === "string" ? value.trim() : "";
  if (title === "" || title.length > MAX_TITLE)
    refuse("title", `be a string of at most ${MAX_TITLE} characters that is not blank`);
  return title;
}

/**
 * @returns a copy of the update, its title trimmed
 * @throws RunnerError `invalid-input`, also for fields that a thread does not have
 */
export function checkThreadUpdate(update: unknown): ThreadUpdate {
  if (typeof update !== "object" || update === null || Array.isArray(update)) refuse("update", "be an object");
  const checked: { -readonly [Field in keyof ThreadUpdate]: ThreadUpdate[Field] } = {};
  for (const [field, value] of Object.entries(update)) {
    switch (field) {
      case "title":
        if (value !== undefined) checked.title = checkTitle(value);
        break;
      case "archived":
      case "pinned":
        if (value === undefined) break;
        checkKind(field, value, FLAG);
        checked[field] = value as boolean; // checked
        break;
      default:
        refuse("update", "have no fields but title, archived and pinned");
    }
  }
  return checked;
}
