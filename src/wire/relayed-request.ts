import { defined } from "../platform/defined.js";
import { invalidInput, RunnerError } from "../run/errors.js";
import { checkBasePath } from "./base-path.js";
import { errorResponse } from "./error-response.js";
import { parseUrl } from "./parse-url.js";
import { readBody } from "./read-body.js";
import { isToken } from "./token.js";

/** A `Request` as data, on its way to the host. */
export interface RelayedRequest {
  /** Absolute. */
  readonly url: string;
  readonly method: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The whole body; absent if the request has none. */
  readonly body?: Uint8Array<ArrayBuffer> | ArrayBuffer;
  /** The path below which the runtime's routes are; "": the origin's root. */
  readonly basePath: string;
  /**
   * The service worker that sent the request, by the id of its life lock: the answer continues until that lock is
   * released, even if the relaying tab closes. Absent: until the tab is gone.
   */
  readonly serviceWorkerId?: string;
  /** The page that made the request, by its client id. */
  readonly clientId?: string;
}

/** The answering host, named by its life lock. */
export interface RelayedHost {
  readonly hostId: string;
  readonly dbName: string;
}

/** The largest body that is relayed, in bytes: both contexts hold all of it in memory. */
export const MAX_BODY_BYTES = 32 * 1_024 * 1_024;

/**
 * Reads a request, and its body, as data for the host.
 *
 * Errors: RunnerError `invalid-input` with `details.maxBodyBytes` if the body is larger (see {@link refusalOf}); the
 * reason of the request's signal; the error of the body's stream.
 */
export async function toRelayed(
  request: Request,
  basePath: string,
  maxBodyBytes: number = MAX_BODY_BYTES,
): Promise<RelayedRequest> {
  const { url, method, headers, signal } = request;
  signal.throwIfAborted();
  const body = await bodyOf(request, maxBodyBytes);
  signal.throwIfAborted();
  return { url, method, headers: [...headers], basePath, ...(body !== undefined && { body }) };
}

/** How often a request is sent in all when hosts die before they answer: nobody knows whether a dead host did it. */
export const triesOf = (method: string): number => (method === "GET" || method === "HEAD" ? 3 : 1);

/** The response to a request that {@link toRelayed} refused; undefined for other errors. */
export function refusalOf(error: unknown): Response | undefined {
  if (!RunnerError.is(error, "invalid-input") || error.details["maxBodyBytes"] === undefined) return undefined;
  return errorResponse(413, "Payload too large");
}

async function bodyOf(request: Request, maxBodyBytes: number): Promise<ArrayBuffer | undefined> {
  if (request.method === "GET" || request.method === "HEAD") return undefined;
  const bytes = await readBody(request, maxBodyBytes, request.signal);
  if (bytes !== undefined) return bytes.byteLength > 0 ? bytes.buffer : undefined;
  const message = `The request's body must have at most ${maxBodyBytes} bytes`;
  throw new RunnerError("invalid-input", { field: "body", maxBodyBytes }, { message });
}

function refuse(field: string, must: string): never {
  throw invalidInput(field, `${field} must ${must}`);
}

/**
 * Checks a {@link RelayedRequest} from another context. The returned copy has only its fields.
 *
 * @throws RunnerError `invalid-input`
 */
export function checkRelayed(data: unknown): RelayedRequest {
  if (typeof data !== "object" || data === null) return refuse("request", "be an object");
  const { url, method, headers, body, basePath, serviceWorkerId, clientId } = data as Record<
    keyof RelayedRequest,
    unknown
  >;
  if (!isToken(method)) return refuse("method", "be a token");
  if (body !== undefined && (method === "GET" || method === "HEAD")) refuse("body", `be absent for ${method}`);
  if (serviceWorkerId !== undefined && (typeof serviceWorkerId !== "string" || serviceWorkerId === "")) {
    refuse("serviceWorkerId", "be a string that is not empty");
  }
  if (clientId !== undefined && typeof clientId !== "string") refuse("clientId", "be a string");
  return {
    url: checkUrl(url),
    method,
    headers: checkHeaders(headers),
    basePath: checkBasePath(basePath),
    ...(body !== undefined && { body: checkBody(body) }),
    ...defined({ serviceWorkerId, clientId }),
  };
}

function checkUrl(url: unknown): string {
  const must = "be an absolute http or https address without credentials";
  const parsed = parseUrl(url);
  if (parsed === undefined) return refuse("url", must);
  const { protocol, username, password, href } = parsed;
  if (!/^https?:$/.test(protocol) || username !== "" || password !== "") return refuse("url", must);
  return href;
}

function checkHeaders(headers: unknown): RelayedRequest["headers"] {
  const must = "be pairs of a header's name and value";
  if (!Array.isArray(headers)) return refuse("headers", must);
  const pairs = headers.map((pair: unknown): [string, string] => {
    if (!Array.isArray(pair) || pair.length !== 2) return refuse("headers", must);
    const [name, value] = pair as [unknown, unknown];
    if (typeof name !== "string" || typeof value !== "string") return refuse("headers", must);
    return [name, value];
  });
  try {
    return [...new Headers(pairs)];
  } catch {
    return refuse("headers", must);
  }
}

function checkBody(body: unknown): NonNullable<RelayedRequest["body"]> {
  if (body instanceof ArrayBuffer) return body;
  if (body instanceof Uint8Array && body.buffer instanceof ArrayBuffer) {
    return body as Uint8Array<ArrayBuffer>; // just checked
  }
  return refuse("body", "be bytes");
}
