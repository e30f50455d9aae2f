import { abortWith, onAbort } from "../../platform/abort.js";
import { answersThreadEndpoints } from "../../run/contract.js";
import { invalidInput } from "../../run/errors.js";
import { loaded } from "../../run/loaded.js";
import { checkNames, type Elsewhere, type Names } from "../../run/options.js";
import { LocalAgentRunner } from "../../runner/local-agent-runner.js";
import { checkBasePath } from "../../wire/base-path.js";
import { coreOf, type AgentRuntime } from "../agent-runtime.js";
import type { RuntimeCore } from "../core.js";
import { HOOKS_ELSEWHERE } from "../hooks-elsewhere.js";
import { isResponse } from "../middleware.js";
import type { Admitted, Answer, Asked, Incoming } from "../request.js";
import { VERSION } from "../version.js";
import * as agents from "./agent-endpoints.js";
import { answerOf } from "./answer-of.js";
import { buffered, isForeign, peekFields } from "./body.js";
import { createCors, type Cors, type CorsOptions } from "./cors.js";
import { describeAgents } from "./describe-agents.js";
import { hostCheck, hostRefused, type AllowedHosts } from "./hosts.js";
import { json, notFound } from "./responses.js";
import { matchRoute, refuseMethod, type Route, type RouteName } from "./routes.js";
import { envelopeElsewhere, envelopeMethod, openEnvelope, type Opened } from "./single-endpoint.js";
import * as threads from "./thread-endpoints.js";

/** The runtime to serve, its base path, and the allowed hosts and origins. */
export interface RuntimeHandlerOptions {
  readonly runtime: AgentRuntime;
  /** The base path of the routes: "/api/copilotkit". Default: the root. */
  readonly basePath?: string;
  /** An endpoint for each route, or one for all of them at the base path. Default `multi-route`. */
  readonly mode?: HandlerMode;
  /**
   * Requests to other hosts are answered with 403, see {@link AllowedHosts}. It is the `Host` header that counts, without
   * one the URL. Default: all are answered, so on a loopback address any page of the internet reaches the runtime by a
   * name that points at it (DNS rebinding).
   */
  readonly allowedHosts?: AllowedHosts;
  /** What pages of other origins may do. Default: nothing. */
  readonly cors?: boolean | CorsOptions;
}

const NAMES: Names<RuntimeHandlerOptions> = {
  runtime: true,
  basePath: true,
  mode: true,
  cors: true,
  allowedHosts: true,
};
const ELSEWHERE: Elsewhere = {
  ...HOOKS_ELSEWHERE,
  endpoint: "write basePath",
  activateChannels: "there are no channels here: leave it out",
};

/** An endpoint for each route, or one for all of them, as in CopilotKit. */
export type HandlerMode = "multi-route" | "single-route";

/** How requests are answered. */
export interface Handling {
  /** What `checkBasePath` returned. */
  readonly basePath: string;
  /** Whether the path or an envelope names the route. */
  readonly mode: HandlerMode;
  readonly cors: Cors | undefined;
  /** Whether a page sent the request through its host. */
  readonly isRelayed?: boolean;
  /** The page that sent the request, if known. */
  readonly page?: string | undefined;
}

/**
 * CopilotKit's runtime endpoints, as a plain function of fetch: for a worker, Hono, Next.js, and, with
 * `ag-ui-local-runtime/node`, for `http` and Express. It never throws.
 *
 * @throws RunnerError `invalid-input` for invalid options
 */
export function createRuntimeHandler(options: RuntimeHandlerOptions): (request: Request) => Promise<Response> {
  checkNames(options, NAMES, { of: "createRuntimeHandler", elsewhere: ELSEWHERE, isRequired: true });
  const { runtime, basePath = "", mode = "multi-route", cors, allowedHosts = ["*"] } = options;
  if (mode !== "multi-route" && mode !== "single-route") {
    throw invalidInput("mode", "mode must be multi-route or single-route");
  }
  const isAllowed = hostCheck(allowedHosts);
  const handling: Handling = { basePath: checkBasePath(basePath), mode, cors: createCors(cors) };
  const core = coreOf(runtime);
  return async (request) => {
    const { host, protocol } = new URL(request.url);
    // Next.js makes the URL with its own name, whatever name was asked for.
    return isAllowed(request.headers.get("Host") ?? host, protocol) ? handle(core, request, handling) : hostRefused();
  };
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
 * Answers a request that a page or a service worker relayed. At the base path itself it carries an envelope; below
 * the base path, the path names the route.
 *
 * The sender chooses the base path. So middleware sees the route's own path, as for a call of a tab. Otherwise a sender
 * could reach every route under a path that the middleware lets through.
 */
export async function handleRelayed(
  core: RuntimeCore,
  request: Request,
  basePath: string,
  page: string | undefined,
): Promise<Response> {
  const url = new URL(request.url);
  const { pathname } = url;
  const isBase = pathname === basePath || pathname === `${basePath}/`;
  if (!isBase && (basePath === "" || !pathname.startsWith(`${basePath}/`))) {
    return handle(core, request, { basePath, mode: "multi-route", cors: undefined, isRelayed: true, page });
  }
  url.pathname = isBase ? "/" : pathname.slice(basePath.length);
  const { method, headers, signal } = request;
  // Firefox cannot pass the body on as a stream.
  const body = await request.arrayBuffer();
  const moved = new Request(url, { method, headers, signal, ...(body.byteLength > 0 && { body }) });
  const mode = isBase ? "single-route" : "multi-route";
  return handle(core, moved, { basePath: "", mode, cors: undefined, isRelayed: true, page });
}

async function answered(core: RuntimeCore, request: Request, handling: Handling): Promise<Response> {
  let route: Route | undefined;
  const { pathname } = new URL(request.url);
  let failure: Response | undefined;
  const failed = (error: unknown): Response =>
    (failure ??= core.failureResponse(pathname, error, route && ENDPOINTS[route.name][1])).clone();
  const respond = async (admitted: Admitted, opening: Opening): Promise<Answer<Response>> => {
    const routed = admitted.isReplaced ? openRouted(admitted.request(), handling.basePath) : opening.opened;
    // Where a replacement has no route either, the first refusal says what was wrong.
    const opened = routed instanceof Response && opening.opened instanceof Response ? opening.opened : routed;
    if (opened instanceof Response) throw await refusalOf(core, opened, admitted.request(), handling);
    ({ route } = opened);
    const { request: asked } = opened;
    const refused = refuseMethod(asked.method, route);
    if (refused !== undefined) throw refused;
    const [endpoint] = ENDPOINTS[route.name] as readonly [Endpoint<Route>]; // that of the route
    const shown = { ...admitted, request: () => asked, isRelayed: handling.isRelayed === true };
    const answer = await endpoint(core, shown, route, handling);
    return asked.method === "HEAD" ? { ...answer, value: new Response(null, answer.value) } : answer;
  };
  try {
    const opening = await open(core, request, handling);
    const served = core.serve({ ...opening, page: handling.page }, (admitted) => respond(admitted, opening), failed);
    const { runner } = core.options;
    // A third-party runner may never answer.
    return await (runner === undefined || runner instanceof LocalAgentRunner ? served : untilGone(served, request));
  } catch (error) {
    return isResponse(error) ? error : failed(error);
  }
}

/** The answer, or an empty one (nginx's status for it) as soon as the client leaves. */
async function untilGone(answer: Promise<Response>, { signal }: Request): Promise<Response> {
  const waiting = abortWith(signal);
  const gone = new Promise<Response>((resolve) =>
    onAbort(waiting.signal, () => resolve(new Response(null, { status: 499 }))),
  );
  try {
    return await Promise.race([answer, gone]);
  } finally {
    waiting.abort();
  }
}

/** A request as middleware sees it. If it is invalid, it is refused after the middleware. */
interface Opening extends Incoming {
  readonly opened: Opened | Response;
}

async function open(core: RuntimeCore, request: Request, { basePath, mode }: Handling): Promise<Opening> {
  const maxBytes = agents.maxBodyOf(core);
  const { isWatched } = core;
  const isEnvelope = mode === "single-route" && request.method === "POST";
  // Middleware may look at the body first.
  const shown = isEnvelope && isWatched ? await buffered(request, maxBytes) : request;
  const opened =
    mode === "single-route"
      ? await openEnvelope(shown, basePath, maxBytes).catch(responseOf)
      : openRouted(shown, basePath);
  if (opened instanceof Response) return incoming(shown, {}, opened);
  const { route } = opened;
  if (!isWatched || opened.request.method !== "POST" || !route.name.startsWith("agent/")) {
    return incoming(opened.request, askedOf(opened, {}), opened);
  }
  const whole = mode === "single-route" ? opened.request : await buffered(opened.request, maxBytes);
  const fields = await peekFields(whole, maxBytes);
  return incoming(whole, askedOf({ route, request: whole }, fields), { route, request: whole });
}

const incoming = (request: Request, asked: Asked, opened: Opened | Response): Opening => ({
  path: new URL(request.url).pathname,
  request: () => request,
  asked,
  opened,
});

/** @throws Response for an id that proxies or middleware could parse differently */
function openRouted(request: Request, basePath: string): Opened | Response {
  const route = matchRoute(new URL(request.url).pathname, basePath);
  return route === undefined ? notFound() : { route, request };
}

function responseOf(error: unknown): Response {
  if (isResponse(error)) return error;
  throw error;
}

/** Tells the sender of an envelope that this handler has one endpoint per route. */
async function refusalOf(
  core: RuntimeCore,
  refusal: Response,
  request: Request,
  { basePath, mode }: Handling,
): Promise<Response> {
  const { pathname } = new URL(request.url);
  const isBase = mode === "multi-route" && (pathname === basePath || pathname === `${basePath}/`);
  return isBase && (await envelopeMethod(request, agents.maxBodyOf(core))) !== undefined
    ? envelopeElsewhere()
    : refusal;
}

/** The same values as for calls of tabs, see `tab-calls.ts`. */
function askedOf({ route, request }: Opened, fields: Readonly<Record<string, unknown>>): Asked {
  const { name, ...ids } = route;
  const id = (field: "threadId" | "runId"): Partial<Asked> => {
    const value = fields[field];
    return typeof value === "string" && value !== "" ? { [field]: value } : {};
  };
  switch (name) {
    case "agent/run":
    case "agent/suggest":
      return { route: name, ...ids, ...id("threadId"), ...id("runId") };
    case "agent/connect":
      // The runId of a connect request does not name a run.
      return { route: name, ...ids, ...id("threadId") };
    case "agent/stop":
      return { route: name, ...ids, ...id("runId") };
    case "threads/update":
      return { route: request.method === "DELETE" ? "threads/delete" : name, ...ids };
    case "threads/list": {
      const agentId = new URL(request.url).searchParams.get("agentId");
      return { route: name, ...(agentId !== null && agentId !== "" && { agentId }) };
    }
    default:
      return { route: name, ...ids };
  }
}

/** How a route is answered. */
type Endpoint<R> = (core: RuntimeCore, request: Admitted, route: R, handling: Handling) => Promise<Answer<Response>>;

/** Each route's endpoint, and CopilotKit's text for its failure. */
const ENDPOINTS: {
  readonly [Name in RouteName]: readonly [Endpoint<Route & { readonly name: Name }>, failure?: string];
} = {
  info: [info, "Failed to retrieve runtime information"],
  health: [health],
  transcribe: [transcription],
  "agent/run": [agents.run],
  "agent/connect": [agents.connect],
  "agent/suggest": [agents.suggest],
  "agent/stop": [agents.stop, "Failed to stop agent"],
  "threads/list": [threads.list, "Failed to list threads"],
  "threads/clear": [threads.clear, "Failed to clear threads"],
  "threads/update": [threads.update, "Failed to update thread"],
  "threads/archive": [threads.archive, "Failed to archive thread"],
  "threads/messages": [threads.messages, "Failed to fetch thread messages"],
  "threads/events": [threads.events, "Failed to fetch thread events"],
  "threads/state": [threads.state, "Failed to fetch thread state"],
};

async function info(core: RuntimeCore, request: Admitted, _: Route, { mode }: Handling): Promise<Answer<Response>> {
  const { a2ui, transcriptionService } = core.options;
  const agentsInfo = await describeAgents(core.agents, request.request);
  const runner = await core.home.open().catch(() => undefined);
  // No runner could be opened yet; it will be one of this library.
  const keeps = runner === undefined || runner instanceof LocalAgentRunner;
  const tells = keeps || answersThreadEndpoints(runner);
  const threadEndpoints = { list: tells, inspect: tells, mutations: keeps, realtimeMetadata: false };
  const a2uiEnabled = a2ui !== undefined && a2ui.enabled !== false;
  return answerOf(() =>
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
  return answerOf(() => json(found, found.status === "ok" ? 200 : 503));
}

async function transcription(
  core: RuntimeCore,
  request: Admitted,
  _: Route,
  { cors }: Handling,
): Promise<Answer<Response>> {
  const { transcriptionService } = core.options;
  // Any page can post a form without a preflight, and transcription costs money.
  const asked = request.request();
  if (isForeign(asked) && cors?.allows(asked) !== true) throw json({ error: "Forbidden" }, 403);
  const { transcribe } = await loaded(import("./transcribe.js"));
  const value = await transcribe(asked, transcriptionService, agents.maxBodyOf(core));
  return { value, response: () => value.clone() };
}
