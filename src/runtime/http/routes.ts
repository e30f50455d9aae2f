import { RunnerError } from "../../run/errors.js";
import { badRequest, methodNotAllowed } from "./responses.js";
import { isSegment } from "./segments.js";
import { parseUrl } from "./url.js";

/** What a request is for, and the ids that its path names. */
export type Route =
  | { readonly name: "info" | "health" | "transcribe" | "threads/list" | "threads/clear" }
  | { readonly name: "agent/run" | "agent/connect" | "agent/suggest"; readonly agentId: string }
  | { readonly name: "agent/stop"; readonly agentId: string; readonly threadId: string }
  | {
      readonly name: "threads/update" | "threads/archive" | "threads/messages" | "threads/events" | "threads/state";
      readonly threadId: string;
    };

/** The routes of the runtime over HTTP. */
export type RouteName = Route["name"];

interface Definition {
  /** Segments of the path; one that begins with ":" stands for an id. */
  readonly pattern: readonly string[];
  readonly methods: readonly string[];
}

const on = (path: string, ...methods: readonly string[]): Definition => ({ pattern: path.split("/"), methods });

/** The first that matches counts: `/threads/clear` is no thread. */
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

/** In CopilotKit the way to a paid service's news: no thread, though its path looks like one's. */
const RESERVED = "threads/subscribe";

/** Ids that look like a fixed word, where they stand as they are. */
const WORDS: readonly string[] = ["clear", "subscribe"];

/**
 * The base path as the path of a URL has it, without a "/" at its end: "" or "/api/copilotkit".
 *
 * @param basePath "", "/", or a path that begins with "/"
 * @throws RunnerError `invalid-input` for what is no path
 */
export function checkBasePath(basePath: string): string {
  const origin = "http://localhost";
  const url = parseUrl(basePath, origin);
  const path = url?.pathname.replace(/\/$/, "");
  if (
    path === undefined ||
    !/^(\/|$)/.test(basePath) ||
    path.includes("//") ||
    // "//host" and "/\host" name another host; "?" and "#" end a path.
    url!.href !== `${origin}${url!.pathname}`
  ) {
    const message = 'basePath must be "" or a path that begins with "/"';
    throw new RunnerError("invalid-input", { field: "basePath" }, { message });
  }
  return path;
}

/**
 * The route that a path names.
 *
 * CopilotKit looks at how a path ends, so `/base/anything/agent/a/run` runs an agent there. Here a path is matched
 * whole: what a proxy or a middleware let through for its beginning is then what is answered.
 *
 * Ids are decoded once, and any text is an id but those that a URL parser would make another path of. Fixed words are
 * compared as they were sent: the thread with the id "clear" is `/threads/%63lear`.
 *
 * @param pathname the path of a parsed URL
 * @param basePath what {@link checkBasePath} returned
 * @returns undefined where there is no such route
 * @throws Response 400 for an id that is "." or "..", or has a backslash
 */
export function matchRoute(pathname: string, basePath: string): Route | undefined {
  if (!pathname.startsWith(`${basePath}/`)) return undefined;
  const path = pathname.slice(basePath.length + 1).replace(/\/$/, "");
  if (path === RESERVED) return undefined;
  const segments = path.split("/");
  for (const [name, { pattern }] of Object.entries(ROUTES)) {
    const ids = idsIn(segments, pattern);
    // The pattern that stands under a name has the ids of that route.
    if (ids !== undefined) return { name, ...ids } as Route;
  }
  return undefined;
}

function idsIn(segments: readonly string[], pattern: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== pattern.length) return undefined;
  const ids: Record<string, string> = {};
  for (const [at, expected] of pattern.entries()) {
    const segment = segments[at]!;
    if (expected.startsWith(":")) {
      if (segment === "") return undefined;
      ids[expected.slice(1)] = segment;
    } else if (segment !== expected) return undefined;
  }
  // Once every word of the pattern was found: what is no route is no bad request.
  for (const [name, segment] of Object.entries(ids)) {
    const id = decoded(segment);
    if (id === undefined) return undefined;
    if (!isSegment(id)) throw badRequest();
    ids[name] = id;
  }
  return ids;
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/**
 * The path of a route: what {@link matchRoute} reads as that route.
 *
 * @param basePath what {@link checkBasePath} returned
 * @returns undefined for ids that no path can carry, see {@link isSegment}
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

/** @returns 405 with `Allow`; undefined where the route answers this method */
export function refuseMethod(method: string, route: Route): Response | undefined {
  const methods = methodsOf(route);
  return methods.includes(method) ? undefined : methodNotAllowed(methods);
}
