import { answersThreadEndpoints } from "../../run/contract.js";
import { LocalAgentRunner } from "../../runner/local-agent-runner.js";
import { coreOf, type AgentRuntime } from "../agent-runtime.js";
import type { RuntimeCore } from "../core.js";
import { errorResponse } from "../error-response.js";
import { isResponse } from "../middleware.js";
import type { Admitted, Answer } from "../request.js";
import { VERSION } from "../version.js";
import * as agents from "./agent-endpoints.js";
import { isForeign } from "./body.js";
import { createCors, type Cors, type CorsOptions } from "./cors.js";
import { internalError, json, notFound } from "./responses.js";
import { checkBasePath, matchRoute, refuseMethod, type Route } from "./routes.js";
import { envelopeElsewhere, envelopeMethod, openEnvelope } from "./single-endpoint.js";
import * as threads from "./thread-endpoints.js";
import { transcribe } from "./transcribe.js";

export interface RuntimeHandlerOptions {
  readonly runtime: AgentRuntime;
  /** Where the routes begin: "/api/copilotkit". Default: at the root. */
  readonly basePath?: string;
  /** An endpoint for each route, or one for all of them at the base path. Default `multi-route`. */
  readonly mode?: HandlerMode;
  /** What pages of other origins may do. Default: nothing. */
  readonly cors?: boolean | CorsOptions;
}

export type HandlerMode = "multi-route" | "single-route";

/** What a request is answered by. */
export interface Handling {
  /** What `checkBasePath` returned. */
  readonly basePath: string;
  /** How a request says what it is for. */
  readonly mode: HandlerMode;
  /** What `/info` tells of the mode. Default: `mode`. */
  readonly toldMode?: HandlerMode;
  readonly cors: Cors | undefined;
}

/**
 * CopilotKit's runtime endpoints, as a plain function of fetch: for a worker, Hono, Next.js, and, with
 * `ag-ui-local-runtime/node`, for `http` and Express. It never throws.
 *
 * @throws RunnerError `invalid-input` for options that are none
 */
export function createRuntimeHandler(options: RuntimeHandlerOptions): (request: Request) => Promise<Response> {
  const { runtime, basePath = "", mode = "multi-route", cors } = options;
  const handling: Handling = { basePath: checkBasePath(basePath), mode, cors: createCors(cors) };
  const core = coreOf(runtime);
  return (request) => handle(core, request, handling);
}

/** Answers one request. */
export async function handle(core: RuntimeCore, request: Request, handling: Handling): Promise<Response> {
  const { cors } = handling;
  const preflight = cors?.preflight(request);
  if (preflight !== undefined) return preflight;
  const response = await answered(core, request, handling);
  return cors === undefined ? response : cors.apply(request, response);
}

/**
 * Answers a request that a page or a service worker relayed: at the base path itself it carries an envelope, below it the
 * path is the route's.
 *
 * The base path is of the sender's choice. So a middleware is shown the route's own request, as for a call of a tab: else
 * everything could be asked for at a path that it lets through.
 */
export async function handleRelayed(core: RuntimeCore, request: Request, basePath: string): Promise<Response> {
  const { pathname } = new URL(request.url);
  const isBase = pathname === basePath || pathname === `${basePath}/`;
  if (!isBase && (basePath === "" || !pathname.startsWith(`${basePath}/`))) {
    return handle(core, request, { basePath, mode: "multi-route", cors: undefined });
  }
  const again = await repeatable(request, isBase ? "/" : pathname.slice(basePath.length));
  if (!isBase) return handle(core, again(), { basePath: "", mode: "multi-route", cors: undefined });
  const opened = await openEnvelope(again(), "", agents.maxBodyOf(core)).catch((error: unknown) => {
    if (!isResponse(error)) throw error;
  });
  // What is no envelope is told so behind the middleware.
  return opened === undefined
    ? handle(core, again(), { basePath: "", mode: "single-route", cors: undefined })
    : handle(core, opened.request, { basePath: "", mode: "multi-route", toldMode: "single-route", cors: undefined });
}

/** A request at another path of its origin. Its body is whole already: Firefox can hand on no stream of it. */
async function repeatable(request: Request, pathname: string): Promise<() => Request> {
  const { method, headers, signal } = request;
  const url = new URL(request.url);
  url.pathname = pathname;
  const bytes = await request.arrayBuffer();
  return () => new Request(url, { method, headers, signal, ...(bytes.byteLength > 0 && { body: bytes }) });
}

async function answered(core: RuntimeCore, request: Request, handling: Handling): Promise<Response> {
  let route: Route | undefined;
  const failed = (error: unknown): Response =>
    route === undefined ? internalError() : errorResponse(error, FAILURES[route.name]);
  const respond = async (admitted: Admitted): Promise<Answer<Response>> => {
    const opened = await routeOf(core, admitted.request(), handling);
    ({ route } = opened);
    const { request: asked } = opened;
    const refused = refuseMethod(asked.method, route);
    if (refused !== undefined) throw refused;
    const answer = await endpoint(core, { ...admitted, request: () => asked }, route, handling);
    return asked.method === "HEAD" ? { ...answer, value: new Response(null, answer.value) } : answer;
  };
  try {
    const path = new URL(request.url).pathname;
    return await core.serve({ path, request: () => request }, respond, failed);
  } catch (error) {
    return isResponse(error) ? error : failed(error);
  }
}

/** What CopilotKit says where a route fails. */
const FAILURES: Readonly<Partial<Record<Route["name"], string>>> = {
  info: "Failed to retrieve runtime information",
  "agent/stop": "Failed to stop agent",
  "threads/list": "Failed to list threads",
  "threads/messages": "Failed to fetch thread messages",
  "threads/events": "Failed to fetch thread events",
  "threads/state": "Failed to fetch thread state",
  "threads/update": "Failed to update thread",
  "threads/archive": "Failed to archive thread",
  "threads/clear": "Failed to clear threads",
};

/** @throws Response */
async function routeOf(
  core: RuntimeCore,
  request: Request,
  { basePath, mode }: Handling,
): Promise<{ readonly route: Route; readonly request: Request }> {
  const maxBytes = agents.maxBodyOf(core);
  if (mode === "single-route") return openEnvelope(request, basePath, maxBytes);
  const { pathname } = new URL(request.url);
  const route = matchRoute(pathname, basePath);
  if (route !== undefined) return { route, request };
  const isBase = pathname === basePath || pathname === `${basePath}/`;
  throw isBase && (await envelopeMethod(request, maxBytes)) !== undefined ? envelopeElsewhere() : notFound();
}

function endpoint(core: RuntimeCore, request: Admitted, route: Route, handling: Handling): Promise<Answer<Response>> {
  switch (route.name) {
    case "info":
      return info(core, request, handling.toldMode ?? handling.mode);
    case "health":
      return health(core);
    case "transcribe":
      return transcription(core, request, handling);
    case "agent/run":
      return agents.run(core, request, route.agentId);
    case "agent/connect":
      return agents.connect(core, request, route.agentId);
    case "agent/suggest":
      return agents.suggest(core, request, route.agentId);
    case "agent/stop":
      return agents.stop(core, request, route.agentId, route.threadId);
    case "threads/list":
      return threads.list(core, request);
    case "threads/clear":
      return threads.clear(core, request);
    case "threads/update":
      return threads.update(core, request, route.threadId);
    case "threads/archive":
      return threads.archive(core, request, route.threadId);
    case "threads/messages":
      return threads.messages(core, request, route.threadId);
    case "threads/events":
      return threads.events(core, request, route.threadId);
    case "threads/state":
      return threads.state(core, request, route.threadId);
  }
}

const answerOf = (value: Response): Answer<Response> => ({ value, response: () => value.clone() });

async function info(core: RuntimeCore, request: Admitted, mode: HandlerMode): Promise<Answer<Response>> {
  const { a2ui, transcriptionService } = core.options;
  const agentsInfo = await core.agents.describe(request.request);
  const runner = await core.home.open().catch(() => undefined);
  // Where no runner can be had now, one of this library is still to be opened.
  const keeps = runner === undefined || runner instanceof LocalAgentRunner;
  const tells = keeps || answersThreadEndpoints(runner);
  const threadEndpoints = { list: tells, inspect: tells, mutations: keeps, realtimeMetadata: false };
  const a2uiEnabled = a2ui !== undefined && a2ui.enabled !== false;
  return answerOf(
    json({
      version: VERSION,
      agents: agentsInfo,
      audioFileTranscriptionEnabled: transcriptionService !== undefined,
      mode: "sse",
      threadEndpoints,
      ...(mode === "single-route" && { singleRoute: { resourceOperations: true, threadEndpoints } }),
      suggestions: true,
      a2uiEnabled,
      ...(a2uiEnabled && { a2ui: { enabled: true, ...(a2ui.agents !== undefined && { agents: a2ui.agents }) } }),
      openGenerativeUIEnabled: false,
      telemetryDisabled: true,
    }),
  );
}

async function health(core: RuntimeCore): Promise<Answer<Response>> {
  const found = await core.health();
  return answerOf(json(found, found.status === "ok" ? 200 : 503));
}

async function transcription(core: RuntimeCore, request: Admitted, { cors }: Handling): Promise<Answer<Response>> {
  const { transcriptionService } = core.options;
  // A form can be posted by any page, with no preflight, and the service costs.
  const asked = request.request();
  if (isForeign(asked) && cors?.allows(asked) !== true) throw json({ error: "Forbidden" }, 403);
  return answerOf(await transcribe(asked, transcriptionService, agents.maxBodyOf(core)));
}
