import { invalidInput } from "../run/errors.js";
import { parseUrl } from "./parse-url.js";

/** Only for parsing the path. */
const SOME_ORIGIN = "http://origin.invalid";

/**
 * Normalizes the path that routes begin with, as a URL parser does, without a trailing "/": "" or "/api/copilotkit".
 *
 * @param basePath "", "/", or a path that begins with "/"
 * @throws RunnerError `invalid-input` if it is not a path
 */
export function checkBasePath(basePath: unknown): string {
  const url = typeof basePath === "string" && /^(\/|$)/.test(basePath) ? parseUrl(basePath, SOME_ORIGIN) : undefined;
  const path = url?.pathname.replace(/\/+$/, "");
  // "//host" and "/\host" name another host; "?" and "#" end the path.
  if (path === undefined || path.includes("//") || url?.href !== `${SOME_ORIGIN}${url?.pathname}`) {
    throw invalidInput("basePath", 'basePath must be "" or a path that begins with "/"');
  }
  return path;
}

/**
 * The same where the page's own files are at the root.
 *
 * @throws RunnerError `invalid-input`; also for "" and "/"
 */
export function checkBelowRoot(basePath: unknown): string {
  const path = checkBasePath(basePath);
  if (path !== "") return path;
  throw invalidInput("basePath", 'basePath must be a path of the origin below "/", like "/api/agents"');
}

/**
 * Whether a parsed URL is `basePath` or below it, in this origin. Parsing has resolved every spelling of `..`; any other
 * percent-encoding is a different path.
 *
 * @param basePath from {@link checkBelowRoot}
 */
export function isBelow(url: URL, basePath: string, origin: string): boolean {
  if (url.origin !== origin) return false;
  return url.pathname === basePath || url.pathname.startsWith(`${basePath}/`);
}
