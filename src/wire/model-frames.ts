import { invalidInput, messageOf, RunnerError } from "../run/errors.js";
import { flawOf, isRecord } from "../run/json.js";
import { weigh } from "../run/size.js";
import { isErrorData } from "./errors.js";
import type { RunnerErrorData } from "./shapes.js";

/**
 * A language model that a tab runs for its host. The tab hands a port over with the call `offerModel`; the host posts an
 * {@link OfferOrder} on it for each request, the tab an {@link OfferNews}. The answer comes on a port of the request's own:
 * {@link ModelFrame}s with the credit of frames.ts. The offer ends with the tab, or when either side posts "end".
 */
export interface ModelOffer {
  /** The name under which agents ask for it. */
  readonly model: string;
  /** It goes on with an assistant message that ends the prompt, without repeating it. */
  readonly continues: boolean;
  /** Whether the tab is visible now. */
  readonly visible: boolean;
}

/** A call of a model: the AI SDK's call options, without those that are no plain data, and without headers. */
export interface ModelCall {
  readonly prompt: readonly ModelMessage[];
  readonly [option: string]: unknown;
}

/** A message of a prompt, as the AI SDK has it. */
export interface ModelMessage {
  readonly role: string;
  readonly content: unknown;
}

/** A stream part of the AI SDK. */
export interface ModelPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** What a host posts to a tab that offers a model. */
export type OfferOrder =
  | { readonly type: "request"; readonly call: ModelCall; readonly port: MessagePort }
  /** Answered by a pong: a frozen tab answers nothing. */
  | { readonly type: "ping" };

/** What such a tab posts. */
export type OfferNews = { readonly type: "pong" } | { readonly type: "visible"; readonly visible: boolean } | "end";

/** A piece of the answer to a request. */
export type ModelFrame =
  | { readonly type: "part"; readonly part: ModelPart }
  /** The model has said everything. */
  | { readonly type: "end" }
  | { readonly type: "error"; readonly error: RunnerErrorData };

/** The largest part, counted as `weigh` does: a generated image goes in one. */
const MAX_PART = 8 * 1_024 * 1_024;
/** The longest name of a model, in characters. */
const MAX_NAME = 200;

/** By the type of a part, its fields that are texts. */
const TEXT_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "stream-start": [],
  "response-metadata": [],
  "text-start": ["id"],
  "text-delta": ["id", "delta"],
  "text-end": ["id"],
  "reasoning-start": ["id"],
  "reasoning-delta": ["id", "delta"],
  "reasoning-end": ["id"],
  "tool-input-start": ["id", "toolName"],
  "tool-input-delta": ["id", "delta"],
  "tool-input-end": ["id"],
  "tool-approval-request": ["approvalId", "toolCallId"],
  "tool-call": ["toolCallId", "toolName", "input"],
  "tool-result": ["toolCallId", "toolName"],
  custom: ["kind"],
  file: ["mediaType"],
  "reasoning-file": ["mediaType"],
  source: ["sourceType", "id"],
  finish: [],
  raw: [],
  error: ["error"],
};

/**
 * What a tab posted as the answer to a request: it may have posted anything. Parts may be of a type that this version does
 * not know: see {@link isKnownPart}.
 *
 * @param size see {@link sizeOfModelFrame}
 * @throws RunnerError `host-failed`, with what is wrong
 */
export function checkModelFrame(data: unknown, size = sizeOfModelFrame(data)): ModelFrame {
  if (!isRecord(data)) throw flaw("a frame that is no object");
  const { type, part, error } = data;
  if (type === "end") return { type };
  if (type === "error") return { type, error: checkErrorData(error) };
  if (type !== "part") throw flaw("a frame of an unknown type");
  checkPart(part, size);
  return { type, part };
}

/** Whether this version knows the type of the part. */
export const isKnownPart = ({ type }: Pick<ModelPart, "type">): boolean => Object.hasOwn(TEXT_FIELDS, type);

/** How large a frame is, at most a little more than the largest part. */
export const sizeOfModelFrame = (data: unknown): number => weigh(data, { size: MAX_PART, once: true }).size;

function checkPart(part: unknown, size: number): asserts part is ModelPart {
  if (!isRecord(part) || typeof part["type"] !== "string") throw flaw("a part without a type");
  const { type } = part;
  if (size > MAX_PART) throw flaw(`a part of more than ${MAX_PART / 1_024 / 1_024} MB`);
  const wrong = flawOf(part);
  if (wrong !== undefined) throw flaw(`a part that ${wrong}`);
  for (const field of isKnownPart({ type }) ? TEXT_FIELDS[type]! : []) {
    if (typeof part[field] !== "string") throw flaw(`a part ${type} whose ${field} is no text`);
  }
  if (type === "stream-start" && !Array.isArray(part["warnings"])) throw flaw("a stream-start without warnings");
  if (type === "finish" && !isFinish(part)) throw flaw("a finish without reason or usage");
}

function isFinish({ finishReason, usage }: Readonly<Record<string, unknown>>): boolean {
  if (!isRecord(finishReason) || typeof finishReason["unified"] !== "string" || !isRecord(usage)) return false;
  return [usage["inputTokens"], usage["outputTokens"]].every(
    (tokens) =>
      isRecord(tokens) && Object.values(tokens).every((count) => count === undefined || Number.isFinite(count)),
  );
}

/** The error of a tab's model as data: with what tells errors of the AI SDK apart, and how long a server asks to wait. */
export function modelErrorData(error: unknown): RunnerErrorData {
  const message = messageOf(error);
  if (RunnerError.is(error)) return { code: error.code, message, details: {} };
  return { code: "provider-unavailable", message, details: { name: "Error", ...sharedDetails(error) } };
}

/** @throws RunnerError `host-failed` */
function checkErrorData(error: unknown): RunnerErrorData {
  if (!isErrorData(error)) throw flaw("an error without code or message");
  return { code: error.code, message: error.message, details: sharedDetails(error.details) };
}

/** The longest text among the details of an error, in characters. */
const MAX_DETAIL = 100;
const HEADERS = ["retry-after", "retry-after-ms"];

/** What may be known of an error by these names. Others are for who made them: a tab's are not handed on. */
function sharedDetails(given: unknown): RunnerErrorData["details"] {
  const { name, statusCode, responseHeaders } = Object(given) as Readonly<Record<string, unknown>>;
  const isShort = (value: unknown): boolean => typeof value === "string" && value.length <= MAX_DETAIL;
  const headers = Object.entries(Object(responseHeaders) as object).filter(
    ([header, value]) => HEADERS.includes(header) && isShort(value),
  );
  return {
    ...(isShort(name) && { name }),
    ...(Number.isInteger(statusCode) && { statusCode }),
    ...(headers.length > 0 && { responseHeaders: Object.fromEntries(headers) }),
  };
}

const flaw = (what: string): RunnerError =>
  new RunnerError("host-failed", {}, { message: `A tab that runs a language model sent ${what}` });

/** @throws RunnerError `invalid-input` */
export function checkModelOffer(offer: unknown): ModelOffer {
  const { model, continues, visible } = isRecord(offer) ? offer : {};
  if (typeof model !== "string" || model === "" || model.length > MAX_NAME) {
    throw wrong("model", `a text of 1 to ${MAX_NAME} characters`);
  }
  if (typeof continues !== "boolean") throw wrong("continues", "true or false");
  if (typeof visible !== "boolean") throw wrong("visible", "true or false");
  return { model, continues, visible };
}

const wrong = (field: string, must: string): RunnerError => invalidInput(field, `${field} must be ${must}`);
