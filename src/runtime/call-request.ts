import { invalidInput, RunnerError } from "../run/errors.js";
import type { RunRequest } from "../wire/shapes.js";
import { isSegment } from "./http/segments.js";
import type { Asked, Incoming, RequestRoute } from "./request.js";

/** A non-HTTP call, described as the equivalent HTTP request. */
export interface Call {
  readonly asked: Asked;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Parts of the path, not encoded. */
  readonly path: readonly string[];
  readonly query?: Readonly<Record<string, string>>;
  /** Plain data. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Aborts when the caller stops waiting and when the call is over. */
  readonly signal?: AbortSignal;
}

/** The request that would ask for a call: its route, method and path, in which ":" begins an id. */
export type Seen = `${RequestRoute}: ${Call["method"]} ${string}`;

export type Names = Pick<Asked, "agentId" | "threadId" | "runId">;

/** `place`: a number, or an object as JSON. */
export type QueryTypes = Readonly<Record<string, "text" | "number" | "boolean" | "place">>;

/** How a call that asks for `G` becomes its request, and how what a middleware makes of that becomes the call. */
export interface CallShape<G> {
  /** The first one whose ids the call names. */
  readonly seen: readonly Seen[];
  /** Fields that stand in the query of a GET. */
  readonly query?: QueryTypes;
  /** The ids that it names. Default: its fields of these names. */
  readonly names?: (given: G) => Names;
  /** Default: its fields that do not stand in the path. */
  readonly body?: (given: G) => object;
  /** The call that the middleware made, to be checked. Default: fields of the body or query, and ids. */
  readonly made?: (ids: Names, body: () => Promise<object>, given: G) => unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** The ids that a checked call names. */
export function namesOf<G>({ names }: CallShape<G>, asked: G): Names {
  if (names !== undefined) return names(asked);
  const { agentId, threadId, runId } = (asked ?? {}) as Fields;
  const ids = Object.entries({ agentId, threadId, runId }).filter(([, id]) => id !== undefined);
  return Object.fromEntries(ids) as Names; // they were checked
}

/** A checked call as its request; `path` still has the names of its ids. */
export function asCall<G>(shape: CallShape<G>, asked: G): { readonly call: Call; readonly path: string } {
  const { seen, query = {}, body } = shape;
  const names = namesOf(shape, asked);
  const fields: Fields = { ...asked, ...names };
  const isNamed = (part: string): boolean => !part.startsWith(":") || fields[part.slice(1)] !== undefined;
  // The last one has only ids that must be given.
  const [route, method, path] = seen.find((one) => one.split("/").every(isNamed))!.split(/: | /) as [
    RequestRoute, // as the type of `seen` says
    Call["method"],
    string,
  ];
  const parts = path.split("/");
  const others = Object.entries(fields).filter(([field]) => !parts.includes(`:${field}`));
  const call: Call = {
    asked: { route, ...names },
    method,
    path: parts.map((part) => (part.startsWith(":") ? String(fields[part.slice(1)]) : part)),
    query: Object.fromEntries(
      others.flatMap(([field, value]) =>
        query[field] === undefined || value === undefined
          ? []
          : [[field, typeof value === "object" ? JSON.stringify(value) : String(value)]],
      ),
    ),
    ...((method === "POST" || method === "PATCH") && { body: body?.(asked) ?? Object.fromEntries(others) }),
  };
  return { call, path };
}

/** A run as the request that would ask for it over HTTP. Its body has all that the run is made of, and nothing else. */
export function runCall({
  agentId,
  threadId,
  input,
  persistedInputMessages,
}: RunRequest): Pick<Call, "asked" | "method" | "path"> & { readonly body: object } {
  return {
    asked: { route: "agent/run", agentId, threadId, runId: input.runId },
    method: "POST",
    path: ["agent", agentId, "run"],
    body: { ...input, threadId, ...(persistedInputMessages !== undefined && { persistedInputMessages }) },
  };
}

/** What the after-middleware is shown of a stream. */
export const streamed = (): Response => new Response(null, { headers: { "content-type": "text/event-stream" } });

/**
 * The request is created once, on demand; creating it throws RunnerError `invalid-input` for a call that no request can
 * represent faithfully.
 */
export function callRequest(call: Call): Incoming {
  const path = `/${call.path.map((part) => encodeURIComponent(part.toWellFormed())).join("/")}`;
  let made: Request | undefined;
  return { path, asked: call.asked, request: () => (made ??= requestOf(call, path)) };
}

/** @throws RunnerError `invalid-input` */
function requestOf(call: Call, path: string): Request {
  // The URL would change meaning: ".." goes up, and a lone surrogate becomes another character.
  if (!call.path.every(isSegment)) {
    throw invalidInput("id", "An id must be one that can stand in a URL");
  }
  const { method, query = {}, body, headers, signal } = call;
  try {
    const url = new URL(path, globalThis.location?.origin ?? "http://localhost");
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const sent = new Headers(headers);
    const init = { method, headers: sent, ...(signal !== undefined && { signal }) };
    if (body === undefined) return new Request(url, init);
    sent.set("content-type", "application/json");
    return new Request(url, { ...init, body: JSON.stringify(body) });
  } catch (cause) {
    // An invalid header, or a body that is not JSON.
    const message = "The call's headers or its input are nothing that a request can carry";
    throw new RunnerError("invalid-input", { field: "request" }, { message, cause });
  }
}
