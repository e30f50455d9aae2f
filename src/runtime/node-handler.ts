import type { IncomingMessage, ServerResponse } from "node:http";
import { createRequest, sendResponse } from "@remix-run/node-fetch-server";
import { hostCheck, hostRefused, isLoopback, isLoopbackHost, type AllowedHosts } from "./http/hosts.js";
import { checkKind, checkNames, FLAG, FUNCTION, NUMBER, type Names } from "../run/options.js";
import { badRequest, internalError } from "./http/responses.js";
import { isPlainTarget } from "./http/segments.js";
import { parseUrl } from "../wire/parse-url.js";

/** How a request's URL is made; by default from what the client sends. */
export interface NodeHandlerOptions {
  /** The host (and port) of every URL. Default: the `Host` header. */
  readonly host?: string;
  /** The protocol of every URL, `https:` for example. Default: that of the connection. */
  readonly protocol?: string;
  /** Whether `Forwarded` and `X-Forwarded-*` headers are believed. Only behind a proxy that sets them. */
  readonly trustProxy?: boolean;
  /**
   * Ends a connection whose client reads nothing for this long while output is pending. Default 60; 0: never.
   */
  readonly readerTimeoutSeconds?: number;
  /**
   * Other hosts are answered with 403, see {@link AllowedHosts}. It is the `Host` header that counts, with `trustProxy`
   * what the proxy says of it, never `host`. Default: on connections to a loopback address only loopback names and `host`, so that no
   * page of the internet reaches the server by a name that points at it (DNS rebinding); else all.
   */
  readonly allowedHosts?: AllowedHosts;
}

/** Another one would make a path of its own, or no URL at all. */
function isHost(given: unknown): boolean {
  const url = typeof given === "string" ? parseUrl(`http://${given}`) : undefined;
  // A parser drops white space at the ends, and takes "/" or "\\" for the path that it adds itself.
  return url !== undefined && url.href === `http://${url.host}/` && !/[\s/\\]/.test(String(given));
}

const NAMES: Names<NodeHandlerOptions> = {
  host: [isHost, "a host name, with its port where that is not the default one"],
  protocol: [(given) => given === "http:" || given === "https:", '"http:" or "https:"'],
  trustProxy: FLAG,
  readerTimeoutSeconds: [
    (given) => NUMBER[0](given) && Number(given) < 2_000_000,
    "a number, 0 or more, of fewer seconds than timers know (2,000,000)",
  ],
  allowedHosts: true,
};

/** A listener of `http.createServer`, and a middleware of Connect and Express 4 and 5. It never calls `next`. */
export type NodeHandler = (req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void) => void;

/** What frameworks add to a request. */
type FrameworkRequest = IncomingMessage & { readonly originalUrl?: unknown; readonly body?: unknown };

/**
 * Serves a handler of Requests with Node: `http.createServer(createNodeHandler(handle))`, or, below the base path of
 * the handler, `app.use("/api/copilotkit", createNodeHandler(handle))`. In front of a body parser rather than behind
 * it: a parser has a limit of its own (Express: 100 KB), which a long thread exceeds.
 *
 * The Request has the whole URL, also below a path that Express has mounted, and the body, also after a body parser has
 * read it. Its `signal` aborts, and the body of the Response is cancelled, when the client goes. The body of the
 * Response is read no faster than the client takes it.
 *
 * A handler that throws is answered with 500 `{ error: "internal_error" }`, a request of which no Request can be made,
 * or whose path a URL parser would change (`..`, `%2e`, a backslash), with 400 `{ error: "Bad request" }`. A Response
 * that fails after its head ends the connection, so that the client sees that something is missing. Nothing is printed.
 */
export function createNodeHandler(
  handler: (request: Request) => Promise<Response> | Response,
  options: NodeHandlerOptions = {},
): NodeHandler {
  checkKind("handler", handler, [FUNCTION[0], "what createRuntimeHandler returns"]);
  checkNames(options, NAMES, { of: "createNodeHandler" });
  const isAllowed = hostRule(options);
  return (req, res) => {
    // Without a listener, a write after another party ended the response would crash the process.
    res.on("error", () => undefined);
    endWhereStalled(res, options);
    // The client may have left while other middleware had the request.
    if (!res.destroyed) void answer(req, res, { handler, options, isAllowed }).catch(() => res.destroy());
  };
}

const READER_TIMEOUT_SECONDS = 60;

/** Unread bytes stay in memory as long as the connection is open. */
function endWhereStalled(
  res: ServerResponse,
  { readerTimeoutSeconds = READER_TIMEOUT_SECONDS }: NodeHandlerOptions,
): void {
  if (readerTimeoutSeconds === 0) return;
  // Counts from the last time that bytes went either way.
  res.setTimeout(readerTimeoutSeconds * 1_000, () => {
    if (res.writableLength > 0) res.destroy();
  });
}

interface Serving {
  readonly handler: (request: Request) => Promise<Response> | Response;
  readonly options: NodeHandlerOptions;
  readonly isAllowed: HostRule;
}

type HostRule = (req: IncomingMessage, request: Request) => boolean;

/** @throws RunnerError `invalid-input` */
function hostRule({ allowedHosts, host }: NodeHandlerOptions): HostRule {
  if (allowedHosts === undefined) {
    const isOwn = host === undefined ? () => false : hostCheck([host]);
    return (req, { url }) => {
      const asked = hostOf(req);
      return !isLoopback(req.socket.localAddress ?? "") || isLoopbackHost(asked) || isOwn(asked, new URL(url).protocol);
    };
  }
  const isListed = hostCheck(allowedHosts);
  return (_, { headers, url }) => isListed(headers.get("Host") ?? undefined, new URL(url).protocol);
}

/**
 * HTTP/2 has `:authority` instead; if both are sent, they are equal.
 * https://www.rfc-editor.org/rfc/rfc9113#section-8.3.1
 */
function hostOf({ headers }: IncomingMessage): string | undefined {
  const authority = headers[":authority"];
  return typeof authority === "string" ? authority : headers.host;
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  { handler, options, isAllowed }: Serving,
): Promise<void> {
  let request: Request;
  try {
    request = toRequest(req, res, options);
  } catch {
    // Nothing more is read from this connection.
    res.shouldKeepAlive = false;
    return send(res, badRequest());
  }
  res.once("finish", () => skipRest(req, request));
  try {
    await send(res, isAllowed(req, request) ? await handler(request) : hostRefused());
  } catch {
    if (res.headersSent) res.destroy();
    else await send(res, internalError());
  }
}

/** @throws if the client's input is no valid URL or headers */
function toRequest(req: FrameworkRequest, res: ServerResponse, options: NodeHandlerOptions): Request {
  // Node reads the first, a proxy in front may have read another. https://www.rfc-editor.org/rfc/rfc9112#section-3.2-6
  const { rawHeaders = [] } = req as Partial<IncomingMessage>;
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host");
  if (hosts.length > 1) throw new TypeError("There is more than one host");
  const target = targetOf(req);
  const request = wasRead(req) ? rebuilt(req, res, target, options) : withUrl(req, target, res, options);
  // A Host like "a/b?" would make a path of its own, in front of the real one.
  const { pathname, search, hash } = new URL(`http://localhost${target}`);
  if (request.url !== `${new URL(request.url).origin}${pathname}${search}${hash}`)
    throw new TypeError("The host is not valid");
  const asked = askedHost(req, res, request, options);
  // What checks hosts behind this handler must not have to know its options, nor HTTP/2.
  if (asked !== undefined) request.headers.set("Host", asked);
  return request;
}

/** The host that the client asked for, with `trustProxy` what the proxy says of it: `host` only replaces it in the URL. */
function askedHost(
  req: IncomingMessage,
  res: ServerResponse,
  { url }: Request,
  { host, ...others }: NodeHandlerOptions,
): string | undefined {
  if (others.trustProxy !== true) return hostOf(req);
  return new URL(host === undefined ? url : createRequest(bare(req, "/"), res, others).url).host;
}

/**
 * Path and query, as they were sent: a guard in front may have looked at them as text. Frameworks keep them in
 * `originalUrl` and leave out of `url` what they matched; clients of proxies send a whole URL.
 * https://www.rfc-editor.org/rfc/rfc9112#name-absolute-form
 */
function targetOf(req: FrameworkRequest): string {
  const target = typeof req.originalUrl === "string" ? req.originalUrl : (req.url ?? "/");
  const path = target.startsWith("/") ? target : /^https?:\/\/[^/?#]*(.*)$/i.exec(target)?.[1];
  if (path === undefined || !isPlainTarget(path)) throw new TypeError("The target is not valid");
  return path.startsWith("/") ? path : `/${path}`;
}

function withUrl(req: IncomingMessage, url: string, res: ServerResponse, options: NodeHandlerOptions): Request {
  const { url: mounted } = req;
  // createRequest looks at `url` alone, and at nothing later.
  req.url = url;
  try {
    return createRequest(req, res, options);
  } finally {
    req.url = mounted;
  }
}

/**
 * Whether somebody has read the body before. `body` does not tell: Express 4 sets it to `{}` for types it leaves alone.
 */
function wasRead(req: IncomingMessage): boolean {
  return req.readableDidRead || req.readableEnded;
}

/**
 * A Request whose body is what a parser has left of it in `req.body`. The type stays what the client said: an object
 * that was made of a form must not pass for JSON.
 */
function rebuilt(req: FrameworkRequest, res: ServerResponse, url: string, options: NodeHandlerOptions): Request {
  const { method = "GET" } = req;
  // The original stream must not be touched: it has ended and would not emit its end again.
  const bodiless = createRequest(bare(req, url), res, options);
  const without = new Headers(bodiless.headers);
  // They described the original bytes.
  for (const name of ["Content-Length", "Content-Encoding", "Transfer-Encoding"]) without.delete(name);
  const body = method === "GET" || method === "HEAD" ? undefined : bodyOf(req.body);
  return new Request(bodiless.url, {
    method,
    headers: without,
    signal: bodiless.signal,
    ...(body !== undefined && { body }),
  });
}

/** A bodiless request with all that createRequest reads. */
const bare = ({ headers, socket }: IncomingMessage, url: string): IncomingMessage =>
  ({ method: "GET", url, headers, socket }) as IncomingMessage;

/** As bytes: from a string, Request would set a content type. */
function bodyOf(parsed: unknown): Uint8Array<ArrayBuffer> | undefined {
  if (parsed === undefined) return undefined;
  // A copy: Node shares memory among buffers.
  if (parsed instanceof Uint8Array) return Uint8Array.from(parsed);
  return new TextEncoder().encode(typeof parsed === "string" ? parsed : JSON.stringify(parsed));
}

/** Discards the unread rest of the body: it blocks the connection's next request. */
function skipRest(req: IncomingMessage, { body }: Request): void {
  // Else its stream would keep buffering.
  if (body?.locked === false) void body.cancel().catch(() => undefined);
  if (!req.readableEnded) req.resume();
}

/** Resolves when the client has everything or is gone. @throws what the body throws */
async function send(res: ServerResponse, response: Response): Promise<void> {
  try {
    if (!res.destroyed) {
      const sent = sendResponse(res, response);
      // Sends the head before any body, so that whoever starts a run knows that it started.
      if (res.headersSent && !res.writableEnded) res.flushHeaders();
      await sent;
    }
  } finally {
    // Stops producing a body that nobody reads.
    if (response.body?.locked === false) void response.body.cancel().catch(() => undefined);
  }
}
