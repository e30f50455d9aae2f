import type { RunAgentInput } from "@ag-ui/client";
import { RunnerError } from "../run/errors.js";
import type { Admitted } from "./request.js";
import { matchRoute, refuseMethod, type Route } from "./http/routes.js";
import { checkRun } from "../wire/checks.js";
import type { ThreadUpdate } from "../run/types.js";
import type { RunRequest } from "../wire/shapes.js";

/** A run as the middleware rewrote it. Errors: RunnerError `invalid-input` if it made another call of it. */
export async function rewrittenRun(request: Admitted, asked: RunRequest): Promise<RunRequest> {
  const route = routeOf(request);
  if (route?.name !== "agent/run") throw otherRoute();
  // The host works out which of the rewritten messages are new.
  const { persistedInputMessages: _asked, ...others } = asked;
  const { persistedInputMessages: _seen, ...input } = (await bodyOf(request)) as RunAgentInput & // checked below, and
    Pick<RunRequest, "persistedInputMessages">; // by the runner
  const { threadId } = input;
  return checkRun({ ...others, agentId: route.agentId, threadId, input });
}

/** The thread to read as the middleware rewrote it. Errors: as {@link rewrittenRun}. */
export async function rewrittenThread(request: Admitted): Promise<string> {
  const route = routeOf(request);
  if (route?.name === "threads/events") return route.threadId;
  if (route?.name !== "agent/connect") throw otherRoute();
  const { threadId: another } = (await bodyOf(request)) as { readonly threadId?: unknown };
  if (typeof another !== "string" || another === "") throw otherRoute();
  return another;
}

type Ids = Readonly<Record<string, string>>;

/**
 * The ids of a call as the middleware rewrote them.
 *
 * @param route parts of the path; one that begins with ":" stands for an id
 * @throws RunnerError `invalid-input` if it made another call of it
 */
export function rewrittenIds<I extends Ids>(request: Admitted, method: string, route: readonly string[]): I {
  const replacing = request.request();
  const parts = new URL(replacing.url).pathname.slice(1).split("/");
  if (replacing.method !== method || parts.length !== route.length) throw otherRoute();
  const found: Record<string, string> = {};
  for (const [at, expected] of route.entries()) {
    const part = decoded(parts[at]!);
    if (part === "" || (!expected.startsWith(":") && part !== expected)) throw otherRoute();
    if (expected.startsWith(":")) found[expected.slice(1)] = part;
  }
  return found as I; // the route has each of them
}

export type QueryTypes<Q extends object> = { readonly [F in keyof Q]-?: "text" | "number" | "boolean" };

/** The query of a call as the middleware rewrote it, without the fields that it left out. */
export function rewrittenQuery<Q extends object>(request: Admitted, types: QueryTypes<Q>): Q {
  const { searchParams } = new URL(request.request().url);
  const fields = Object.entries(types).flatMap(([field, type]): [string, string | number | boolean][] => {
    const text = searchParams.get(field);
    if (text === null) return [];
    return [[field, type === "number" ? Number(text) : type === "boolean" ? text === "true" : text]];
  });
  return Object.fromEntries(fields) as Q; // the caller checks it
}

/** The run to stop as the middleware rewrote it. Errors: as {@link rewrittenRun}. */
export async function rewrittenStop(request: Admitted): Promise<{ readonly runId?: string }> {
  const { runId } = (await bodyOf(request)) as { readonly runId?: unknown };
  if (runId === undefined) return {};
  if (typeof runId !== "string" || runId === "") throw otherRoute();
  return { runId };
}

/** The changes of a thread as the middleware rewrote them; checked by the runner. Errors: as {@link rewrittenRun}. */
export const rewrittenUpdate = (request: Admitted): Promise<ThreadUpdate> => bodyOf(request);

/** The body of a call as the middleware rewrote it, to be checked. Errors: as {@link rewrittenRun}. */
export const rewrittenBody = (request: Admitted): Promise<object> => bodyOf(request);

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw otherRoute();
  }
}

function routeOf(request: Admitted): Route | undefined {
  const { url, method } = request.request();
  const route = matchRoute(new URL(url).pathname, "");
  return route === undefined || refuseMethod(method, route) !== undefined ? undefined : route;
}

async function bodyOf(request: Admitted): Promise<object> {
  const body: unknown = await request
    .request()
    .json()
    .catch(() => undefined);
  if (typeof body === "object" && body !== null) return body;
  throw otherRoute();
}

const otherRoute = (): RunnerError =>
  new RunnerError(
    "invalid-input",
    { field: "request" },
    { message: "A middleware can put only a request of the same kind into the place of a tab's call" },
  );
