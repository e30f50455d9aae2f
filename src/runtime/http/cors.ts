import { invalidInput } from "../../run/errors.js";
import { checkNames, FLAG, type Check, type Elsewhere, type Names } from "../../run/options.js";
import { parseUrl } from "../../wire/parse-url.js";
import { isToken } from "../../wire/token.js";

/** What pages of other origins may do. Absent or false: no CORS headers; `true` is `{}`. */
export interface CorsOptions {
  /**
   * The origins whose pages may read responses: one, several, or a function from the request's origin to the origin to
   * allow, or nothing. Default: every origin ("*").
   */
  readonly origin?: string | readonly string[] | ((origin: string) => string | null | undefined);
  /** Default: the methods of the routes. */
  readonly methods?: readonly string[];
  /** The request headers that a page may set. Default: all that it asks for. */
  readonly allowHeaders?: readonly string[];
  /** The response headers that a page may read. */
  readonly exposeHeaders?: readonly string[];
  /** Whether pages may send cookies and read the response. Needs `origin`, which must not be "*". */
  readonly credentials?: boolean;
  /** How long a browser may cache the answer to a preflight, in s. */
  readonly maxAge?: number;
}

/** Implements {@link CorsOptions}. https://fetch.spec.whatwg.org/#http-cors-protocol */
export interface Cors {
  /** The answer to OPTIONS: 204. Undefined for every other method. */
  preflight(request: Request): Response | undefined;
  /** Whether the page that sent the request may read the response. */
  allows(request: Request): boolean;
  /** The response with CORS headers for this request's origin; its body is not read. */
  apply(request: Request, response: Response): Response;
}

const METHODS = ["GET", "HEAD", "POST", "PATCH", "DELETE"] as const;

const TOKENS: Check = [(given) => Array.isArray(given) && given.every(isToken), "a list of names"];

const NAMES: Names<CorsOptions> = {
  origin: true,
  methods: TOKENS,
  allowHeaders: TOKENS,
  exposeHeaders: TOKENS,
  credentials: FLAG,
  maxAge: [(given) => Number.isSafeInteger(given) && Number(given) >= 0, "a whole number of seconds"],
};
/** The names in CopilotKit's handler and the package `cors`. */
const ELSEWHERE: Elsewhere = {
  allowMethods: "write cors.methods",
  allowedMethods: "write cors.methods",
  allowedHeaders: "write cors.allowHeaders",
  exposedHeaders: "write cors.exposeHeaders",
};

/**
 * @returns undefined if no CORS headers are to be sent
 * @throws RunnerError `invalid-input` for options that browsers would reject
 */
export function createCors(options: boolean | CorsOptions | undefined): Cors | undefined {
  if (options === undefined || options === false) return undefined;
  if (options !== true)
    checkNames(options, NAMES, { of: "createRuntimeHandler", within: "cors", elsewhere: ELSEWHERE });
  const {
    origin = "*",
    methods = METHODS,
    allowHeaders,
    exposeHeaders = [],
    credentials = false,
    maxAge,
  } = options === true ? {} : options;
  const origins = typeof origin === "string" ? [origin] : origin;
  if (typeof origins !== "function" && !Array.isArray(origins)) {
    refuse("cors.origin", "must be an origin, a list of them, or a function of one");
  }
  const everyone = typeof origins !== "function" && origins.includes("*");
  if (typeof origins !== "function") checkOrigins(origins);
  if (credentials && everyone) refuse("cors.credentials", 'need cors.origin: browsers refuse them together with "*"');

  const allowed = (request: Request): string | undefined => {
    if (everyone) return "*";
    const from = request.headers.get("Origin");
    if (from === null) return undefined;
    if (typeof origins !== "function") return origins.includes(from) ? from : undefined;
    // Not "*": a cached response would then allow every origin.
    return allows(origins, from) ? from : undefined;
  };

  const tell = (request: Request, headers: Headers): void => {
    if (!everyone) vary(headers, "Origin");
    const reader = allowed(request);
    if (reader === undefined) return;
    headers.set("Access-Control-Allow-Origin", reader);
    if (credentials) headers.set("Access-Control-Allow-Credentials", "true");
  };

  return {
    preflight(request) {
      if (request.method !== "OPTIONS") return undefined;
      const headers = new Headers();
      tell(request, headers);
      headers.set("Access-Control-Allow-Methods", methods.join(", "));
      // "*" does not cover Authorization, and with credentials it is a literal header name.
      const asked = allowHeaders?.join(", ") ?? request.headers.get("Access-Control-Request-Headers");
      if (asked) headers.set("Access-Control-Allow-Headers", asked);
      if (maxAge !== undefined) headers.set("Access-Control-Max-Age", String(maxAge));
      vary(headers, "Access-Control-Request-Method");
      vary(headers, "Access-Control-Request-Headers");
      return new Response(null, { status: 204, headers });
    },
    allows: (request) => allowed(request) !== undefined,
    apply(request, response) {
      const { status, statusText } = response;
      if (status < 200) return response; // Response.error(): it cannot be copied
      // A copy: the headers of a response from fetch are immutable.
      const headers = new Headers(response.headers);
      tell(request, headers);
      if (exposeHeaders.length > 0) headers.set("Access-Control-Expose-Headers", exposeHeaders.join(", "));
      return new Response(response.body, { status, statusText, headers });
    },
  };
}

/** A function that throws allows no origin; the response itself is not lost. */
function allows(say: (origin: string) => unknown, origin: string): boolean {
  try {
    return say(origin) === origin;
  } catch {
    return false;
  }
}

function vary(headers: Headers, name: string): void {
  const known = (headers.get("Vary") ?? "").split(",").map((item) => item.trim().toLowerCase());
  if (!known.includes(name.toLowerCase()) && !known.includes("*")) headers.append("Vary", name);
}

/** Origins are compared as browsers serialize them: with a trailing "/" or the default port they would never match. */
function checkOrigins(origins: readonly string[]): void {
  for (const origin of origins) {
    if (origin === "*" || origin === "null") continue;
    // URL gives no origin for the schemes of apps and extensions.
    const own = /^https?:/i.test(origin) ? parseUrl(origin)?.origin : origin;
    if (origin !== own || !/^[a-z][a-z\d+.-]*:\/\/[^\s/?#*]+$/.test(origin)) {
      refuse("cors.origin", "must be written as browsers do: https://example.com (for patterns give a function)");
    }
  }
}

function refuse(field: string, must: string): never {
  throw invalidInput(field, `${field} ${must}`);
}
