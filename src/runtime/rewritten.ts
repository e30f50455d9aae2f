import type { RunAgentInput } from "@ag-ui/client";
import { invalidInput } from "../run/errors.js";
import { checkRun } from "../wire/checks.js";
import type { RunRequest } from "../wire/shapes.js";
import type { CallShape, Names, QueryTypes } from "./call-request.js";
import { idsIn } from "./http/segments.js";
import type { Admitted } from "./request.js";

/** A run as the middleware rewrote it. Errors: RunnerError `invalid-input` if it made another call of it. */
export async function rewrittenRun(request: Admitted, asked: RunRequest): Promise<RunRequest> {
  const { agentId = "" } = idsOf(request, "POST", "agent/:agentId/run") ?? otherRoute();
  // The host works out which of the rewritten messages are new.
  const { persistedInputMessages: _asked, ...others } = asked;
  const { persistedInputMessages: _seen, ...input } = (await bodyOf(request)) as RunAgentInput & // checked below, and
    Pick<RunRequest, "persistedInputMessages">; // by the runner
  const { threadId } = input;
  return checkRun({ ...others, agentId, threadId, input });
}

/** The thread to read as the middleware rewrote it. Errors: as {@link rewrittenRun}. */
export async function rewrittenThread(request: Admitted): Promise<string> {
  const read = idsOf(request, "GET", "threads/:threadId/events");
  if (read?.threadId !== undefined) return read.threadId;
  if (idsOf(request, "POST", "agent/:agentId/connect") === undefined) return otherRoute();
  const { threadId: another } = (await bodyOf(request)) as { readonly threadId?: unknown };
  return typeof another === "string" && another !== "" ? another : otherRoute();
}

/** A call as the middleware rewrote it, to be checked. Errors: as {@link rewrittenRun}. */
export async function rewrittenCall<G>(
  request: Admitted,
  { made, query = {} }: CallShape<G>,
  { method, path }: { readonly method: string; readonly path: string },
  given: G,
): Promise<unknown> {
  const ids = idsOf(request, method, path) ?? otherRoute();
  const body = (): Promise<object> => bodyOf(request);
  if (made !== undefined) return made(ids, body, given);
  if (given === undefined) return given;
  if (method === "POST") return { ...(await body()), ...ids };
  // What a request has no place for stays as it was asked.
  const kept = Object.entries(given as object).filter(([field]) => query[field] === undefined);
  return { ...Object.fromEntries(kept), ...queryOf(request, query), ...ids };
}

/** Without the fields that the middleware left out. */
function queryOf(request: Admitted, types: QueryTypes): object {
  const { searchParams } = new URL(request.request().url);
  const fields = Object.entries(types).flatMap(([field, type]): [string, unknown][] => {
    const text = searchParams.get(field);
    return text === null ? [] : [[field, valueIn(text, type)]];
  });
  return Object.fromEntries(fields);
}

/** A value as `asCall` wrote it. What is malformed is refused by the check of the call. */
function valueIn(text: string, type: QueryTypes[string]): unknown {
  if (type === "text") return text;
  if (type === "boolean") return text === "true";
  if (type === "number" || !text.startsWith("{")) return Number(text);
  try {
    return JSON.parse(text);
  } catch {
    return Number.NaN;
  }
}

/** The ids in the path of a request; undefined if it is another request than that of this method and path. */
function idsOf(request: Admitted, method: string, path: string): Names | undefined {
  const { url, method: made } = request.request();
  return made === method ? idsIn(new URL(url).pathname.slice(1).split("/"), path.split("/")) : undefined;
}

async function bodyOf(request: Admitted): Promise<object> {
  const body: unknown = await request
    .request()
    .json()
    .catch(() => undefined);
  return typeof body === "object" && body !== null ? body : otherRoute();
}

function otherRoute(): never {
  const message = "A middleware can put only a request of the same kind into the place of a tab's call";
  throw invalidInput("request", message);
}
