import type { RunAgentInput } from "@ag-ui/client";
import { RunnerError } from "../../run/errors.js";
import { INPUT, issuesOf, known as describedBy, type Issue } from "../../run/input-shape.js";
import { flawOf } from "../../run/json.js";
import type { ThreadUpdate } from "../../run/types.js";
import { upgradeInput } from "../../wire/protocol-versions.js";
import { invalidBody, json, payloadTooLarge, unsupportedMediaType } from "./responses.js";

/*
 * What arrives over HTTP is read and checked here. Each function of this file throws the Response that says no; what it
 * returns was checked.
 */

/** So many of the things that are wrong are looked for and told. */
const MAX_DETAILS = 10;

/**
 * Whether a page of another origin sent it, as far as the browser says so. `Sec-Fetch-Site` is what the browser saw,
 * whatever proxies stand between; it is not sent to plain http but for localhost, `Origin` is.
 * https://www.w3.org/TR/fetch-metadata/
 */
export function isForeign(request: Request): boolean {
  const site = request.headers.get("Sec-Fetch-Site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  const origin = request.headers.get("Origin");
  return origin !== null && origin !== new URL(request.url).origin;
}

/** The type and subtype of the request's `Content-Type`, in small letters; undefined where there is none. */
export function mediaTypeOf(request: Request): string | undefined {
  return request.headers.get("Content-Type")?.split(";", 1)[0]!.trim().toLowerCase();
}

export function isJson(mediaType: string | undefined): boolean {
  return mediaType !== undefined && /^[\w!#$&^.-]+\/(?:[\w!#$&^.-]+\+)?json$/.test(mediaType);
}

/**
 * Refuses what is not sent as JSON. A form, and a body of plain text or without a type, can be posted by any page
 * anywhere without a preflight, with the cookies of the person who looks at it; JSON cannot. So a request without a
 * type is taken only from callers that are no page, or a page of this origin.
 * https://fetch.spec.whatwg.org/#cors-safelisted-request-header
 *
 * @throws Response 415
 */
export function requireJson(request: Request): void {
  if (!isSentAsJson(request)) refuse(request, unsupportedMediaType());
}

function isSentAsJson(request: Request): boolean {
  const type = mediaTypeOf(request);
  return type === undefined ? !isForeign(request) : isJson(type);
}

/**
 * The whole body.
 *
 * @param maxBytes of a longer one no more is read
 * @throws Response 413 where it is longer, 415 where it is compressed, 400 where it ends early; RunnerError `host-failed`
 * where a middleware has read it
 */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const before = known.get(request);
  if (before !== undefined) {
    checkUnread(request);
    if ("failure" in before) throw before.failure;
    return before.bytes;
  }
  const encoding = request.headers.get("Content-Encoding");
  if (encoding !== null && encoding.trim().toLowerCase() !== "identity") refuse(request, unsupportedMediaType());
  if (Number(request.headers.get("Content-Length")) > maxBytes) refuse(request, payloadTooLarge());
  // Firefox has had no `Request.body` for years: there the size shows when it has been read.
  const body = request.body as Request["body"] | undefined;
  checkUnread(request);
  if (body === undefined) return wholeBytes(request, maxBytes);
  if (body === null) return new Uint8Array();

  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw invalidBody("The body ended early");
    });
    if (done) break;
    length += value.byteLength;
    if (length > maxBytes) {
      // Not awaited: it may last as long as the sender likes.
      void reader.cancel().catch(() => undefined);
      throw payloadTooLarge();
    }
    chunks.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

/** @throws RunnerError `host-failed` */
function checkUnread({ bodyUsed, body }: Request): void {
  if (!bodyUsed && (body as Request["body"] | undefined)?.locked !== true) return;
  const message = "beforeRequestMiddleware has read the request's body: it must read that of request.clone()";
  throw new RunnerError("host-failed", { field: "beforeRequestMiddleware" }, { message });
}

async function wholeBytes(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await request.arrayBuffer().catch(() => {
    throw invalidBody("The body ended early");
  });
  if (bytes.byteLength > maxBytes) throw payloadTooLarge();
  return new Uint8Array(bytes);
}

/** What a body was found to be. */
interface Known {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Why there is no more of it. */
  readonly failure?: unknown;
  parsed?: Parsed;
}

/** Bodies that were read before anybody asked for them. */
const known = new WeakMap<Request, Known>();

/**
 * A request whose body is read, for whoever looks at it before it is answered, and can be read again. What is wrong with
 * the body is told to whoever asks for it.
 */
export async function buffered(request: Request, maxBytes: number): Promise<Request> {
  const { url, method, headers, signal } = request;
  const read = await readBytes(request, maxBytes).then(
    (bytes): Known => ({ bytes }),
    (failure: unknown): Known => ({ bytes: new Uint8Array(), failure }),
  );
  const body = read.bytes.byteLength > 0 && { body: read.bytes };
  const again = new Request(url, { method, headers, signal, ...body });
  known.set(again, read);
  return again;
}

/** A request that carries a value as JSON, which nobody need parse again; a string is the body as it is. */
export function carrying(value: unknown, url: URL, init: RequestInit): Request {
  const isText = typeof value === "string";
  const bytes = new TextEncoder().encode(isText ? value : JSON.stringify(value));
  const request = new Request(url, { ...init, body: bytes });
  known.set(request, isText ? { bytes } : { bytes, parsed: { value } });
  return request;
}

function refuse(request: Request, answer: Response): never {
  if (!request.bodyUsed) void request.body?.cancel().catch(() => undefined);
  throw answer;
}

/**
 * The whole body as text.
 *
 * @throws Response as {@link readBytes}, and 400 where it is not UTF-8
 */
export async function readText(request: Request, maxBytes: number): Promise<string> {
  const bytes = await readBytes(request, maxBytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalidBody("The body is not UTF-8");
  }
}

/**
 * The whole body as JSON.
 *
 * @throws Response as {@link readText}, 415 where it was not sent as JSON, 400 where it is none
 */
export async function readJson(request: Request, maxBytes: number): Promise<unknown> {
  requireJson(request);
  const before = known.get(request);
  if (before?.parsed !== undefined) checkUnread(request);
  const parsed = before?.parsed ?? parseJson(await readText(request, maxBytes));
  if (before !== undefined) before.parsed = parsed;
  if ("wrong" in parsed) throw invalidBody(parsed.wrong);
  return parsed.value;
}

/**
 * The fields of a request that is {@link buffered}, which is left as it is.
 *
 * @returns none where they cannot be had: whoever asks for the body is told why
 */
export async function peekFields(request: Request, maxBytes: number): Promise<Readonly<Record<string, unknown>>> {
  if (!isSentAsJson(request)) return {};
  return fieldsOf(await readJson(request, maxBytes).catch(() => undefined)) ?? {};
}

type Parsed = { readonly value: unknown } | { readonly wrong: string };

/**
 * JSON that may be handed on. A field `__proto__` is refused, at any depth: schemas, agents and their libraries copy
 * objects field by field, and would make its value the copy's prototype.
 */
function parseJson(text: string): Parsed {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { wrong: "The body is not JSON" };
  }
  const flaw = flawOf(value);
  return flaw === undefined ? { value } : { wrong: `The body ${flaw}` };
}

/** What a reader posts to run or connect; `lastSeenEventId` is the last `id:` that it has of the thread. */
export type PostedRunInput = RunAgentInput & { readonly lastSeenEventId?: string };

/**
 * The input of a run as it was posted. A `state` of `{}` is left as it is: that it counts as not set is the core's to
 * say.
 *
 * @throws Response as {@link readJson}, and 400 `{ error, details }`; details names fields, never what stood in them
 */
export async function parseRunInput(
  request: Request,
  maxBytes: number,
  leftOut?: (field: string) => void,
): Promise<PostedRunInput> {
  const body = await readJson(request, maxBytes);
  // Clients of every version post here.
  const upgraded = describedBy(upgradeInput(body), INPUT, leftOut);
  const issues = issuesOf(upgraded, INPUT, MAX_DETAILS);
  if (issues.length > 0) throw invalidBody(describe(issues, upgraded));
  const posted = upgraded as Posted; // as was just seen
  for (const field of ["threadId", "runId", "parentRunId"] as const) {
    if (posted[field] === "") throw invalidBody(`${field}: must not be empty`);
  }
  const { threadId, runId, protocolVersion, parentRunId, state, messages, forwardedProps, resume } = posted;
  const { tools = [], context = [] } = posted;
  const lastSeenEventId = fieldsOf(body)?.["lastSeenEventId"];
  return {
    threadId,
    runId,
    messages,
    tools,
    context,
    ...(protocolVersion !== undefined && { protocolVersion }),
    ...(parentRunId !== undefined && { parentRunId }),
    ...(state !== undefined && state !== null && { state }),
    ...(forwardedProps !== undefined && { forwardedProps }),
    ...(resume !== undefined && { resume }),
    // CopilotKit sends null where it has seen none.
    ...(typeof lastSeenEventId === "string" && lastSeenEventId !== "" && { lastSeenEventId }),
  };
}

type Posted = Partial<RunAgentInput> & Pick<RunAgentInput, "threadId" | "runId" | "messages">;

/** Made of places alone: what stands in them, and a key, may be anything that was posted. */
function describe(issues: readonly Issue[], body: unknown): string {
  const lines = issues.map((issue) => {
    const place = issue.path.map(placeOf).join(".") || "body";
    if (valueAt(body, issue.path) === undefined) return `${place}: is missing`;
    return `${place}: ${issue.expected === undefined ? "is not valid" : `must be of type ${issue.expected}`}`;
  });
  return [...lines, ...(issues.length < MAX_DETAILS ? [] : ["and maybe more"])].join("; ");
}

function placeOf(key: PropertyKey): string {
  return typeof key === "number" || (typeof key === "string" && /^[a-z]\w{0,39}$/i.test(key)) ? String(key) : "…";
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  let value = body;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/**
 * What a stop names: `{ runId }`, or nothing (whatever runs in the thread).
 *
 * @throws Response as {@link readText}, 415 where it was not sent as JSON, 400 `{ error: "Invalid stop request" }` or
 * `{ error: "Invalid runId" }`
 */
export async function parseStopBody(request: Request, maxBytes: number): Promise<{ readonly runId?: string }> {
  requireJson(request);
  const text = await readText(request, maxBytes);
  if (text.trim() === "") return {};
  const parsed = parseJson(text);
  const body = fieldsOf("wrong" in parsed ? undefined : parsed.value);
  if (body === undefined || Object.keys(body).some((key) => key !== "runId")) {
    throw json({ error: "Invalid stop request" }, 400);
  }
  if (!Object.hasOwn(body, "runId")) return {};
  const { runId } = body;
  if (typeof runId !== "string" || runId.trim() === "") throw json({ error: "Invalid runId" }, 400);
  return { runId };
}

/**
 * What a PATCH of a thread changes. CopilotKit calls the title `name`, and sends the agent's id along, which changes
 * nothing.
 *
 * @throws Response as {@link readJson}, and 400 for fields that are unknown or of another type
 */
export async function parseThreadUpdate(request: Request, maxBytes: number): Promise<ThreadUpdate> {
  const body = fieldsOf(await readJson(request, maxBytes));
  if (body === undefined) throw invalidBody("body: must be of type object");
  const { name, archived, pinned, agentId, ...others } = body;
  if (Object.keys(others).length > 0) throw invalidBody("body: may have name, archived, pinned and agentId");
  if (!isOptional(agentId, "string")) throw invalidBody("agentId: must be of type string");
  if (!isOptional(name, "string")) throw invalidBody("name: must be of type string");
  if (!isOptional(archived, "boolean")) throw invalidBody("archived: must be of type boolean");
  if (!isOptional(pinned, "boolean")) throw invalidBody("pinned: must be of type boolean");
  return {
    ...(name !== undefined && { title: name }),
    ...(archived !== undefined && { archived }),
    ...(pinned !== undefined && { pinned }),
  };
}

interface Types {
  string: string;
  boolean: boolean;
}

function isOptional<T extends keyof Types>(value: unknown, type: T): value is Types[T] | undefined {
  return value === undefined || typeof value === type;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}
