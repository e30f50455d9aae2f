import { messageOf, RunnerError } from "../run/errors.js";
import { isRecord } from "../run/json.js";
import { printable, quoted } from "../run/printable.js";
import { parseUrl } from "../wire/parse-url.js";
import { retryAfterMs } from "../run/retry-after.js";
import type { ModelErrorCode } from "../run/run-error-codes.js";
import type { Redact } from "./redact.js";

/** What a RUN_ERROR says. */
export interface ModelFailure {
  readonly code: ModelErrorCode | "AGENT_FAILED";
  readonly message: string;
  /** How long the server asks to be left alone, in ms. */
  readonly retryAfterMs?: number;
}

/** What servers, and browsers of their own model, say of a question that is too long. There is no code for it that all of them use. */
const TOO_LONG =
  /context.?(?:length|window|size)|too many tokens|(?:prompt|input) is too (?:long|large)|maximum.{0,30}tokens|exceed_context/i;

/** What browsers and Node say where no answer came: its reason (CORS, no server) is told to no script. */
const UNREACHABLE =
  /failed to fetch|fetch failed|load failed|networkerror|network error|cannot connect|network connection|error in input stream|terminated|socket hang up|econn/i;

/** The longest part of a server's own words that a message carries, in characters. */
const MAX_SAID = 500;

/** A field of an error of the AI SDK. Read by name: an app may have two copies of the SDK. */
const fieldIn = (from: unknown, name: string): unknown =>
  typeof from === "object" && from !== null ? (Reflect.get(from, name) as unknown) : undefined;

/** Empty where it is no text. */
function textIn(from: unknown, name: string): string {
  const value = fieldIn(from, name);
  return typeof value === "string" ? value : "";
}

/** Where a URL leads, without what it asks. */
function originOf(url: string): string {
  const parsed = parseUrl(url);
  return parsed === undefined ? "" : ` (${parsed.origin})`;
}

/** What an answer's headers say of the next request: in seconds, as a date, or, as OpenAI does, also in ms. */
function waitOf(headers: unknown, now: number): Pick<ModelFailure, "retryAfterMs"> {
  const inMs = Number(textIn(headers, "retry-after-ms") || Number.NaN);
  const waits = [retryAfterMs(fieldIn(headers, "retry-after"), now) ?? Number.NaN, inMs].filter((ms) => ms >= 0);
  return waits.length === 0 ? {} : { retryAfterMs: Math.max(...waits) };
}

/**
 * Why a model gave no answer, and what to do about it.
 *
 * @param error what the AI SDK, a provider or an option of the agent threw
 * @param redact applied to everything that others say
 * @param now ms since the Unix epoch
 */
export function failureOf(error: unknown, redact: Redact, now: number): ModelFailure {
  // Of a `tabModel`: with what its tab tells of the model's error, if it is one.
  const isTabs = RunnerError.is(error, "provider-unavailable");
  const told = isTabs ? error.details : error;
  const name = textIn(told, "name");
  const lastError = fieldIn(told, "lastError");
  // It retried, and gave up: what counts is the last answer.
  if (name === "AI_RetryError" && lastError !== undefined) return failureOf(lastError, redact, now);
  // A secret that the cut divides would not be known as one.
  const said = printable(redact(messageOf(error)), MAX_SAID).trim();
  const says = said === "" ? "" : `: ${said}`;
  const fail = (code: ModelFailure["code"], message: string): ModelFailure => ({ code, message });
  // It says what to do.
  if (isTabs && name === "") return fail("PROVIDER_UNAVAILABLE", said);
  const status = fieldIn(told, "statusCode");
  const statusCode = typeof status === "number" ? status : undefined;
  const wait = waitOf(fieldIn(told, "responseHeaders"), now);
  const at = originOf(textIn(told, "url"));
  const words = `${messageOf(error)} ${textIn(told, "responseBody")}`;
  switch (name) {
    case "AI_LoadAPIKeyError":
      return fail(
        "AUTHENTICATION",
        `The model has no API key${says}. Give it one, for example by a header of the page`,
      );
    case "AI_NoSuchModelError":
      return fail("MODEL_NOT_FOUND", `There is no such model${says}. Check its name`);
    case "AI_NoObjectGeneratedError":
      return fail("INVALID_OUTPUT", `The model's answer does not match the schema of its output${says}`);
    case "AI_ToolChoiceViolationError":
      return violationOf(error as object);
    case "AI_InvalidResponseDataError":
    case "AI_JSONParseError":
    case "AI_TypeValidationError":
      return malformed(says);
    default:
  }
  if (statusCode === 401 || statusCode === 403) {
    return fail(
      "AUTHENTICATION",
      `The model's server refused the API key (${statusCode})${says}. Is it set, valid, and allowed to use this model?`,
    );
  }
  if (
    statusCode === 413 ||
    ((statusCode === undefined || statusCode === 400 || statusCode === 500) && TOO_LONG.test(words))
  ) {
    return fail(
      "CONTEXT_LENGTH",
      `The conversation is longer than the model can read${says}. Start a new thread, send less, or take a model with a larger context`,
    );
  }
  if (statusCode === 404) {
    return fail(
      "MODEL_NOT_FOUND",
      `The model or the address was not found (404)${says}. Check the model's name and the base URL${at}; a local server must have the model loaded`,
    );
  }
  if (statusCode === 429) {
    const when = wait.retryAfterMs === undefined ? "" : ` Try again in ${Math.ceil(wait.retryAfterMs / 1_000)} s.`;
    const message = `The model's server has had too many requests, or a quota is used up (429)${says}.${when}`;
    return { code: "RATE_LIMITED", message, ...wait };
  }
  if (statusCode !== undefined && (statusCode >= 500 || statusCode === 408)) {
    const message = `The model's server failed (${statusCode})${says}. Try again later`;
    return { code: "PROVIDER_UNAVAILABLE", message, ...wait };
  }
  // An answer that came, and broke off or cannot be read.
  if (statusCode !== undefined && statusCode < 300) {
    return UNREACHABLE.test(messageOf(fieldIn(told, "cause"))) ? brokenOff : malformed(says);
  }
  if (statusCode !== undefined)
    return fail("INVALID_REQUEST", `The model's server refused the request (${statusCode})${says}`);
  if (name === "AI_StreamProviderError") return fail("PROVIDER_UNAVAILABLE", `The model's server failed${says}`);
  if (name === "TimeoutError") return fail("PROVIDER_UNAVAILABLE", `The model's server did not answer in time${says}`);
  if (name === "AI_APICallError" || (name === "TypeError" && UNREACHABLE.test(words))) {
    return fail(
      "PROVIDER_UNAVAILABLE",
      `The model's server could not be reached${at}${says}. Is it running, and does it allow this page's origin (CORS)?`,
    );
  }
  if (name.startsWith("AI_")) return fail("INVALID_REQUEST", `The model could not be asked${says}`);
  if (isTabs) return fail("PROVIDER_UNAVAILABLE", `The model in a tab failed${says}`);
  return fail("AGENT_FAILED", said === "" ? "The agent failed" : said);
}

/** The last answer of a run called tools. */
export const tooManySteps: ModelFailure = {
  code: "STEP_LIMIT",
  message: "The model went on calling tools after its last step. Allow more of them (maxSteps)",
};

/** The model did not heed the choice of tools that the request makes. */
function violationOf(error: object): ModelFailure {
  const choice: unknown = Reflect.get(error, "toolChoice");
  // Only the last step has this choice.
  if (isRecord(choice) && choice["type"] === "none") return tooManySteps;
  const message =
    "The model called no tool although settings.toolChoice demands one. Take another model, or leave it to it";
  return { code: "INVALID_RESPONSE", message };
}

const malformed = (says: string): ModelFailure => ({
  code: "INVALID_RESPONSE",
  message: `The model's server sent what no model sends${says}. Is the base URL that of its API?`,
});

const brokenOff: ModelFailure = {
  code: "PROVIDER_UNAVAILABLE",
  message: "The connection to the model's server ended before its answer did. Try again",
};

/** Why an answer ends whose server asks for an approval of one of its own tools. */
export const unasked = (toolName: string): ModelFailure => ({
  code: "INVALID_REQUEST",
  message: `The model's server asks for an approval of its own tool ${quoted(toolName)}, which this agent does not ask people for. Allow it in the tool's options, for example requireApproval: "never"`,
});

/**
 * Why an answer counts as cut off: its stream ended without a reason.
 *
 * @param contentType of the response, where it is known
 * @param isEmpty nothing of an answer came
 */
export function cutOff(contentType: string | undefined, isEmpty: boolean): ModelFailure {
  if (contentType !== undefined && isEmpty && !/event-stream|json/i.test(contentType)) {
    return malformed(`: an answer of type ${printable(contentType, 80)}`);
  }
  return brokenOff;
}
