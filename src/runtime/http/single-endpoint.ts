import { invalidEnvelope, json, methodNotAllowed, notFound } from "./responses.js";
import { carrying, fieldsOf, isJson, mediaTypeOf, readJson } from "./body.js";
import { matchRoute, methodsOf, pathOf, refuseMethod, type Route } from "./routes.js";
import { isPlainTarget } from "./segments.js";
import { parseUrl } from "../../wire/parse-url.js";

/*
 * One endpoint for all routes: each request is a POST of an envelope `{ method, params?, body? }` to the base path.
 * Each function throws the Response that refuses the request.
 */

/** The content of an envelope, as the request that the route's own endpoint would have received. */
export interface Opened {
  readonly route: Route;
  readonly request: Request;
}

const METHODS = [
  "info",
  "agent/run",
  "agent/connect",
  "agent/suggest",
  "agent/stop",
  "transcribe",
  "resource/request",
] as const;

type Method = (typeof METHODS)[number];

interface Envelope {
  readonly method: Method;
  readonly params: Fields;
  readonly body: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Opens the envelope of a request.
 *
 * @param basePath what `checkBasePath` returned
 * @throws Response 404 for another path, 405 for another method, 415, 413, and 400 `{ error, message }` for an invalid
 * envelope
 */
export async function openEnvelope(request: Request, basePath: string, maxBytes: number): Promise<Opened> {
  const { pathname } = new URL(request.url);
  if (pathname !== basePath && pathname !== `${basePath}/`) throw notFound();
  if (request.method !== "POST") throw methodNotAllowed(["POST"]);
  const { method, params, body } = await readEnvelope(request, maxBytes);
  switch (method) {
    case "info":
      return opened(request, basePath, { name: method }, undefined);
    case "transcribe":
      return opened(request, basePath, { name: method }, needed(body));
    case "agent/run":
    case "agent/connect":
    case "agent/suggest":
      return opened(request, basePath, { name: method, agentId: text(params, "agentId") }, needed(body));
    case "agent/stop": {
      const agentId = text(params, "agentId");
      const threadId = text(params, "threadId");
      return opened(request, basePath, { name: method, agentId, threadId }, body === undefined ? {} : needed(body));
    }
    case "resource/request":
      return openResource(request, basePath, text(params, "path"), text(params, "httpMethod").toUpperCase(), body);
  }
}

async function readEnvelope(request: Request, maxBytes: number): Promise<Envelope> {
  if (!isJson(mediaTypeOf(request))) throw invalidEnvelope("An envelope is sent as JSON", 415);
  const envelope = fieldsOf(
    await readJson(request, maxBytes).catch((answer: unknown) => {
      // 413 and 415 are the same on every endpoint.
      throw answer instanceof Response && answer.status === 400 ? invalidEnvelope("The envelope is not JSON") : answer;
    }),
  );
  if (envelope === undefined) throw invalidEnvelope("The envelope is no object");
  const method = methodIn(envelope);
  if (method === undefined) throw invalidEnvelope(`method must be one of ${METHODS.join(", ")}`);
  const params = envelope["params"] === undefined ? {} : fieldsOf(envelope["params"]);
  if (params === undefined) throw invalidEnvelope("params must be an object");
  return { method, params, body: envelope["body"] };
}

/** Routes of threads, named by their path below the base path and their method. */
function openResource(request: Request, basePath: string, path: string, method: string, body: unknown): Opened {
  // "//host", "/\host" and the like must not lead outside the base path.
  const origin = "http://resource.invalid";
  const url = path.startsWith("/") && isPlainTarget(path) ? parseUrl(path, origin) : undefined;
  if (url?.origin !== origin) throw invalidEnvelope("path must be below the base path");
  const target = new URL(request.url);
  target.pathname = `${basePath}${url.pathname}`;
  target.search = url.search;
  const route = matchRoute(target.pathname, basePath);
  if (route === undefined || !route.name.startsWith("threads/")) throw notFound();
  const refused = refuseMethod(method, route);
  if (refused !== undefined) throw refused;
  return { route, request: inner(request, target, method, body ?? undefined) };
}

function opened(request: Request, basePath: string, route: Route, body: unknown): Opened {
  const target = new URL(request.url);
  const path = pathOf(route, basePath);
  if (path === undefined) throw invalidEnvelope("params has an id that is not valid");
  target.pathname = path;
  return { route, request: inner(request, target, methodsOf(route)[0]!, body) };
}

/** A string is sent as it is: that is how CopilotKit sends a body that it could not parse. */
function inner(outer: Request, url: URL, method: string, body: unknown): Request {
  const headers = new Headers(outer.headers);
  // These described the envelope.
  for (const name of ["Content-Length", "Content-Encoding", "Content-Type", "Transfer-Encoding"]) headers.delete(name);
  const { signal } = outer;
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers, signal });
  // As its envelope was, which no page sends to another origin without a preflight: also where it has no body.
  headers.set("Content-Type", "application/json");
  return body === undefined
    ? new Request(url, { method, headers, signal })
    : carrying(body, url, { method, headers, signal });
}

function needed(body: unknown): unknown {
  if (body === undefined || body === null) throw invalidEnvelope("body is missing");
  return body;
}

function text(params: Fields, field: string): string {
  const value = params[field];
  if (typeof value !== "string" || value.trim() === "") throw invalidEnvelope(`params.${field} must be a text`);
  return value;
}

function methodIn(envelope: Fields): Method | undefined {
  return METHODS.find((method) => method === envelope["method"]);
}

/**
 * The method of the envelope in a request for which a multi-route handler found no route. Reads the body; never throws.
 *
 * @returns undefined if it is not an envelope
 */
export async function envelopeMethod(request: Request, maxBytes: number): Promise<string | undefined> {
  if (request.method !== "POST" || !isJson(mediaTypeOf(request))) return undefined;
  const envelope = await readJson(request, maxBytes).catch(() => undefined);
  return methodIn(fieldsOf(envelope) ?? {});
}

/** The 404 for an envelope sent to a multi-route handler. */
export function envelopeElsewhere(): Response {
  return json(
    {
      error: "Not found",
      code: "single_route_envelope_against_multi_route_runtime",
      message:
        'An envelope ({ method: "…" }) came to a runtime that has an endpoint for each route. Take useSingleEndpoint ' +
        'out of the page, or give the handler mode: "single-route".',
    },
    404,
  );
}
