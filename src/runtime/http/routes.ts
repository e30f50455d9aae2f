import { badRequest, methodNotAllowed } from "./responses.js";
import { idsIn, isSegment } from "./segments.js";

export type OfAgent = { readonly agentId: string };
export type OfThread = { readonly threadId: string };

/** The route of a request, and the ids in its path. */
export type Route =
  | { readonly name: "info" | "health" | "transcribe" | "threads/list" | "threads/clear" }
  | ({ readonly name: "agent/run" | "agent/connect" | "agent/suggest" } & OfAgent)
  | ({ readonly name: "agent/stop" } & OfAgent & OfThread)
  | ({
      readonly name: "threads/update" | "threads/archive" | "threads/messages" | "threads/events" | "threads/state";
    } & OfThread);

/** The routes of the runtime over HTTP. */
export type RouteName = Route["name"];

interface Definition {
  /** Segments of the path; one that begins with ":" is a placeholder for an id. */
  readonly pattern: readonly string[];
  readonly methods: readonly string[];
}

const on = (path: string, ...methods: readonly string[]): Definition => ({ pattern: path.split("/"), methods });

/** The first match wins: `/threads/clear` is not a thread. */
export const ROUTES: Readonly<Record<RouteName, Definition>> = {
  info: on("info", "GET", "HEAD"),
  health: on("health", "GET", "HEAD"),
  transcribe: on("transcribe", "POST"),
  "agent/run": on("agent/:agentId/run", "POST"),
  "agent/connect": on("agent/:agentId/connect", "POST"),
  "agent/suggest": on("agent/:agentId/suggest", "POST"),
  "agent/stop": on("agent/:agentId/stop/:threadId", "POST"),
  "threads/list": on("threads", "GET", "HEAD"),
  "threads/clear": on("threads/clear", "POST"),
  "threads/update": on("threads/:threadId", "PATCH", "DELETE"),
  "threads/archive": on("threads/:threadId/archive", "POST"),
  "threads/messages": on("threads/:threadId/messages", "GET", "HEAD"),
  "threads/events": on("threads/:threadId/events", "GET", "HEAD"),
  "threads/state": on("threads/:threadId/state", "GET", "HEAD"),
};

/** A route of CopilotKit's paid service, not a thread of that id. */
const RESERVED = "threads/subscribe";

/** Ids that equal a fixed segment: their first character is percent-encoded. */
const WORDS: readonly string[] = ["clear", "subscribe"];

/**
 * The route of a path.
 *
 * CopilotKit matches the end of a path, so `/base/anything/agent/a/run` runs an agent there. Here the whole path must
 * match: a proxy or middleware that allows a prefix then allows exactly the routes below it.
 *
 * Ids are decoded once. Any text can be an id, unless a URL parser would rewrite it. Fixed segments are compared before
 * decoding: the thread with the id "clear" is `/threads/%63lear`.
 *
 * @param pathname the path of a parsed URL
 * @param basePath what `checkBasePath` returned
 * @returns undefined if no route matches
 * @throws Response 400 for an id that is "." or "..", or contains a backslash
 */
export function matchRoute(pathname: string, basePath: string): Route | undefined {
  if (!pathname.startsWith(`${basePath}/`)) return undefined;
  const path = pathname.slice(basePath.length + 1).replace(/\/$/, "");
  if (path === RESERVED) return undefined;
  const segments = path.split("/");
  for (const [name, { pattern }] of Object.entries(ROUTES)) {
    const ids = idsIn(segments, pattern);
    if (ids === undefined) continue;
    // After all fixed segments matched: an unknown route is 404, not 400.
    if (!Object.values(ids).every(isSegment)) throw badRequest();
    // Each pattern has exactly the ids of its route.
    return { name, ...ids } as Route;
  }
  return undefined;
}

/**
 * The path of a route, the inverse of {@link matchRoute}.
 *
 * @param basePath what `checkBasePath` returned
 * @returns undefined if an id cannot be part of a path, see {@link isSegment}
 */
export function pathOf(route: Route, basePath: string): string | undefined {
  const ids: Readonly<Record<string, string>> = { ...route };
  const segments = ROUTES[route.name].pattern.map((expected) =>
    expected.startsWith(":") ? encoded(ids[expected.slice(1)]!) : expected,
  );
  return segments.includes(undefined) ? undefined : `${basePath}/${segments.join("/")}`;
}

function encoded(id: string): string | undefined {
  if (!isSegment(id)) return undefined;
  return WORDS.includes(id) ? `%${id.charCodeAt(0).toString(16)}${id.slice(1)}` : encodeURIComponent(id);
}

/** The methods that a route answers. */
export function methodsOf(route: Route): readonly string[] {
  return ROUTES[route.name].methods;
}

/** @returns 405 with `Allow`; undefined if the route accepts the method */
export function refuseMethod(method: string, route: Route): Response | undefined {
  const methods = methodsOf(route);
  return methods.includes(method) ? undefined : methodNotAllowed(methods);
}
