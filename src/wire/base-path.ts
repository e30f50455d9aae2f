import { invalidInput } from "../run/errors.js";

/** Only for parsing the path. */
const SOME_ORIGIN = "http://origin.invalid";

/**
 * Normalises the path below which requests go to the runtime: as in a parsed URL, without a trailing slash.
 *
 * @throws RunnerError `invalid-input`; also for "/", because the page's own files are below it
 */
export function checkBasePath(basePath: unknown): string {
  // "//" and "/\" start another origin.
  if (typeof basePath === "string" && /^\/(?![/\\])[^?#]*$/.test(basePath)) {
    const { pathname } = new URL(basePath, SOME_ORIGIN);
    const path = pathname.replace(/\/+$/, "");
    if (path !== "") return path;
  }
  throw invalidInput("basePath", 'basePath must be a path of the origin below "/", like "/api/agents"');
}

/**
 * Whether a parsed URL is `basePath` or below it, in this origin. Parsing has resolved every spelling of `..`; any other
 * percent-encoding is a different path.
 *
 * @param basePath from {@link checkBasePath}
 */
export function isBelow(url: URL, basePath: string, origin: string): boolean {
  if (url.origin !== origin) return false;
  return url.pathname === basePath || url.pathname.startsWith(`${basePath}/`);
}
