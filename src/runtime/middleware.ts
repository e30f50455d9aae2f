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
   * What came in. A call of a tab, and an envelope of `mode: "single-route"`, is shown as the request that would ask for
   * the same at a route of its own.
   */
  readonly request: Request;
  /** The path of its address. To know what is asked for, look at `resolved`. */
  readonly path: string;
  readonly resolved: ResolvedRequest;
}

/**
 * Looks at each request before anything is done for it, by whichever way it came in.
 *
 * Returns nothing to let it through, a Request to put into its place, a Response to answer it. A Response may be thrown
 * too. Anything else that is thrown refuses it: with its `status` (or `statusCode`) where that is 401, 403 or 429, else
 * with 500, as does anything else that is returned. In the place of a tab's call only a request of the same kind can
 * stand: the ids in its path, its query and its body may be other ones.
 */
export type BeforeRequestMiddleware = (
  context: BeforeRequestContext,
) => Request | Response | undefined | void | Promise<Request | Response | undefined | void>;

/** What {@link AfterRequestMiddleware} is given. */
export interface AfterRequestContext {
  readonly runtime: Runtime;
  /** What was answered; that of a stream has no body. */
  readonly response: Response;
  /** The path that the middleware before it saw. */
  readonly path: string;
  /** As the middleware before it saw it. */
  readonly resolved: ResolvedRequest;
  /** Of a run: its messages. Of a reading of a thread: the thread's as they were at its end. Else none. */
  readonly messages: readonly PlainMessage[];
  readonly threadId?: string;
  /** The run that this request started. Each run is told of once, however many requests read it. */
  readonly runId?: string;
}

/**
 * Is told of each request that was let through, once it is over: a run when it is settled, however it ended and whether
 * or not its reader is still there; a stream when it ended or its reader left. What it throws is told to
 * `metrics.error` and changes nothing.
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
 * Looks at each event that leaves, by whichever way; the log keeps the event as it was. Messages and state that leave by
 * themselves are shown to it as MESSAGES_SNAPSHOT and STATE_SNAPSHOT, and deltas that were committed at once as one. What
 * it is given is a copy.
 *
 * @returns the event, another one in its place, or nothing to leave it out. What it leaves out must leave a valid
 *   sequence (a START with its END). What it throws ends the reading: nothing leaves unseen.
 */
export type FilterEvent = (event: BaseEvent, context: FilterContext) => BaseEvent | undefined | null;

const REFUSALS: Readonly<Record<number, string>> = { 401: "Unauthorized", 403: "Forbidden", 429: "Too many requests" };

/** Not `instanceof`: frameworks bring classes of their own. */
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
  // Somebody's mistake is not for the one who asked.
  if (error === undefined) return undefined;
  return json(
    { error, ...(typeof message === "string" && message !== "" && { message }) },
    code as number,
  ); /* one of the above */
}

/** How much of an answer's text a tab is told. */
const TOLD_LENGTH = 2_000;

/** A middleware's answer, for who called no HTTP. */
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
