import { defined } from "../../platform/defined.js";
import type { RunAgentInput } from "@ag-ui/client";
import { RunnerError } from "../../run/errors.js";
import { INPUT, issuesOf, known as describedBy, type Issue } from "../../run/input-shape.js";
import { flawOf, isRecord } from "../../run/json.js";
import type { ThreadUpdate } from "../../run/types.js";
import { readBody } from "../../wire/read-body.js";
import { upgradeInput } from "../../wire/protocol-versions.js";
import { invalidBody, json, payloadTooLarge, unsupportedMediaType } from "./responses.js";

/*
 * Reads and validates request bodies. Each function throws the Response that refuses the request.
 */

/** The maximum number of issues in a response. */
const MAX_DETAILS = 10;

/**
 * Whether a page of another origin sent the request, according to the browser. Proxies do not change `Sec-Fetch-Site`;
 * browsers omit it for plain http (except localhost), where `Origin` decides.
 * https://www.w3.org/TR/fetch-metadata/
 */
export function isForeign(request: Request): boolean {
  const site = request.headers.get("Sec-Fetch-Site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  const origin = request.headers.get("Origin");
  return origin !== null && origin !== new URL(request.url).origin;
}

/** The media type of `Content-Type` in lower case, without parameters; undefined if there is none. */
export function mediaTypeOf(request: Request): string | undefined {
  return request.headers.get("Content-Type")?.split(";", 1)[0]!.trim().toLowerCase();
}

export function isJson(mediaType: string | undefined): boolean {
  return mediaType !== undefined && /^[\w!#$&^.-]+\/(?:[\w!#$&^.-]+\+)?json$/.test(mediaType);
}

/**
 * Refuses bodies that were not sent as JSON. Any page can post a form, plain text or a body without a type to any
 * origin without a preflight, with the user's cookies; it cannot post JSON. So a request without a type is accepted
 * only from callers that are not pages, and from pages of this origin.
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
 * @param maxBytes reading stops beyond it
 * @throws Response 413 if it is longer, 415 if it is compressed, 400 if it ends early; RunnerError `host-failed` if
 * middleware has consumed it
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
  checkUnread(request);
  const bytes = await readBody(request, maxBytes).catch(() => {
    throw invalidBody("The body ended early");
  });
  if (bytes === undefined) throw payloadTooLarge();
  return bytes;
}

/** @throws RunnerError `host-failed` */
function checkUnread({ bodyUsed, body }: Request): void {
  if (!bodyUsed && (body as Request["body"] | undefined)?.locked !== true) return;
  const message = "beforeRequestMiddleware has read the request's body: it must read that of request.clone()";
  throw new RunnerError("host-failed", { field: "beforeRequestMiddleware" }, { message });
}

/** The result of reading a body. */
interface Known {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Why reading it failed. */
  readonly failure?: unknown;
  parsed?: Parsed;
}

/** Bodies that were read before their endpoint needs them. */
const known = new WeakMap<Request, Known>();

/**
 * A copy of the request whose body has been read and can be read again, for middleware. If reading failed, the error is
 * thrown to the endpoint that asks for the body.
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

/** A request with a value as its JSON body, which is not parsed again; a string is sent as it is. */
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
 * @throws Response as {@link readBytes}, and 400 if it is not UTF-8
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
 * @throws Response as {@link readText}, 415 if it was not sent as JSON, 400 if it is not JSON
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
 * The fields of a {@link buffered} request; its body stays readable.
 *
 * @returns `{}` if the body is invalid: the endpoint that reads the body reports why
 */
export async function peekFields(request: Request, maxBytes: number): Promise<Readonly<Record<string, unknown>>> {
  if (!isSentAsJson(request)) return {};
  return fieldsOf(await readJson(request, maxBytes).catch(() => undefined)) ?? {};
}

type Parsed = { readonly value: unknown } | { readonly wrong: string };

/**
 * Parses JSON. A field `__proto__` is refused at any depth: code that copies objects field by field would make its
 * value the prototype of the copy.
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

/** The body of run and connect; `lastSeenEventId` is the last `id:` that the reader has of the thread. */
export type PostedRunInput = RunAgentInput & { readonly lastSeenEventId?: string };

/**
 * The posted input of a run. A `state` of `{}` is kept: the core decides that it counts as not set.
 *
 * @throws Response as {@link readJson}, and 400 `{ error, details }`; details names fields, never their values
 */
export async function parseRunInput(
  request: Request,
  maxBytes: number,
  leftOut?: (field: string) => void,
): Promise<PostedRunInput> {
  const body = await readJson(request, maxBytes);
  // Clients of every protocol version post here.
  const upgraded = describedBy(upgradeInput(body), INPUT, leftOut);
  const issues = issuesOf(upgraded, INPUT, MAX_DETAILS);
  if (issues.length > 0) throw invalidBody(describe(issues, upgraded));
  const posted = upgraded as Posted; // just validated
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
    ...defined({ protocolVersion, parentRunId }),
    ...(state !== undefined && state !== null && { state }),
    ...defined({ forwardedProps, resume }),
    // CopilotKit sends null before its first event.
    ...(typeof lastSeenEventId === "string" && lastSeenEventId !== "" && { lastSeenEventId }),
  };
}

type Posted = Partial<RunAgentInput> & Pick<RunAgentInput, "threadId" | "runId" | "messages">;

/** Names only places: values and unusual keys are untrusted. */
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
 * The body of a stop: `{ runId }`, or empty for the thread's live run.
 *
 * @throws Response as {@link readText}, 415 if it was not sent as JSON, 400 `{ error: "Invalid stop request" }` or
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
 * The body of a PATCH of a thread. CopilotKit calls the title `name`; the `agentId` that it sends is ignored.
 *
 * @throws Response as {@link readJson}, and 400 for unknown fields and wrong types
 */
export async function parseThreadUpdate(request: Request, maxBytes: number): Promise<ThreadUpdate> {
  const body = fieldsOf(await readJson(request, maxBytes));
  if (body === undefined) throw invalidBody("body: must be of type object");
  const { name, archived, pinned, agentId, ...others } = body;
  if (Object.keys(others).length > 0) throw invalidBody("body: may have name, archived, pinned and agentId");
  for (const [type, fields] of [
    ["string", { agentId, name }],
    ["boolean", { archived, pinned }],
  ] as const) {
    for (const [field, value] of Object.entries(defined(fields))) {
      if (typeof value !== type) throw invalidBody(`${field}: must be of type ${type}`);
    }
  }
  return defined({ title: name, archived, pinned }) as ThreadUpdate; // just checked
}

/** Of what was parsed from JSON: undefined where it is no object. */
export const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  isRecord(value) ? value : undefined;
