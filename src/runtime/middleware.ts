import type { BaseEvent } from "@ag-ui/client";
import { RunnerError } from "../run/errors.js";
import type { PlainMessage } from "./plain-messages.js";
import type { ResolvedRequest } from "./request.js";
import type { Runtime } from "./runtime.js";
import { json } from "./http/responses.js";

/** What {@link BeforeRequestMiddleware} is given. */
export interface BeforeRequestContext {
  readonly runtime: Runtime;
  /**
   * The incoming request. A tab's call or an envelope of `mode: "single-route"` is shown as the equivalent request to
   * its own route.
   */
  readonly request: Request;
  /** The URL's path. For what is requested, see `resolved`. */
  readonly path: string;
  readonly resolved: ResolvedRequest;
}

/**
 * Sees each request before it is handled, whichever entry point it came through.
 *
 * Returns nothing to let it through, a Request to replace it, or a Response to answer it. A Response may be thrown too.
 * Any other thrown value refuses it: with its `status` (or `statusCode`) if that is 401, 403 or 429, else with 500. Any
 * other return value refuses it with 500. A tab's call can be replaced only by a request of the same kind: the ids in
 * its path, its query and its body may differ.
 */
export type BeforeRequestMiddleware = (
  context: BeforeRequestContext,
) => Request | Response | undefined | void | Promise<Request | Response | undefined | void>;

/** What {@link AfterRequestMiddleware} is given. */
export interface AfterRequestContext {
  readonly runtime: Runtime;
  /** The response; a stream's has no body. */
  readonly response: Response;
  /** The path that the middleware before it saw. */
  readonly path: string;
  /** As the middleware before it saw it. */
  readonly resolved: ResolvedRequest;
  /** A run's messages, or after a read of a thread the thread's messages when the read ended; else none. */
  readonly messages: readonly PlainMessage[];
  readonly threadId?: string;
  /** The run that this request started. Each run is reported once, however many requests read it. */
  readonly runId?: string;
}

/**
 * Called after each admitted request: for a run once it is settled, however it ended and whether or not its reader is
 * still there; for a stream when it ended or its reader left. What it throws goes to `metrics.error` and changes
 * nothing.
 */
export type AfterRequestMiddleware = (context: AfterRequestContext) => void | Promise<void>;

/** What {@link FilterEvent} is given besides the event. */
export interface FilterContext {
  readonly request: Request;
  readonly path: string;
  /** As the middleware before it saw it. */
  readonly resolved: ResolvedRequest;
  readonly threadId: string;
}

/**
 * Sees a copy of each outgoing event on every route; the log keeps the original. Messages and state sent outside events
 * are shown as MESSAGES_SNAPSHOT and STATE_SNAPSHOT, and deltas that were committed together as one.
 *
 * @returns the event, a replacement, or nothing to drop it. Dropping must leave a valid sequence (a START with its
 *   END). If it throws, the read ends: no event leaves unfiltered.
 */
export type FilterEvent = (event: BaseEvent, context: FilterContext) => BaseEvent | undefined | null;

const REFUSALS: Readonly<Record<number, string>> = { 401: "Unauthorized", 403: "Forbidden", 429: "Too many requests" };

/** Not `instanceof`: frameworks have their own classes. */
const isOf = (kind: "Request" | "Response", value: unknown): boolean =>
  Object.prototype.toString.call(value) === `[object ${kind}]`;

export const isRequest = (value: unknown): value is Request => isOf("Request", value);
export const isResponse = (value: unknown): value is Response => isOf("Response", value);

/** The answer that a middleware threw; undefined where it failed. */
export function refusalOf(thrown: unknown): Response | undefined {
  if (isResponse(thrown)) return thrown;
  const { status, statusCode, message } = (typeof thrown === "object" && thrown !== null ? thrown : {}) as {
    readonly [key in "status" | "statusCode" | "message"]?: unknown;
  };
  const code = typeof status === "number" ? status : statusCode;
  const error = typeof code === "number" ? REFUSALS[code] : undefined;
  // The caller must not see somebody's bug.
  if (error === undefined) return undefined;
  return json(
    { error, ...(typeof message === "string" && message !== "" && { message }) },
    code as number,
  ); /* one of the above */
}

/** Characters of a refusal's body that a tab gets. */
const TOLD_LENGTH = 2_000;

/** A middleware's Response as an error, for callers without HTTP. */
export async function refusedError(response: Response): Promise<RunnerError> {
  const { status } = response;
  const text = await response.text().catch(() => "");
  const retryAfter = response.headers.get("retry-after");
  return new RunnerError("refused", {
    status,
    body: text.slice(0, TOLD_LENGTH),
    ...(retryAfter !== null && { retryAfter }),
  });
}
