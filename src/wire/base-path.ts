import { RunnerError } from "../run/errors.js";

/** Only there to have the path parsed. */
const SOME_ORIGIN = "http://origin.invalid";

/**
 * The path below which requests go to the runtime, as addresses have it: parsed, without a slash at its end.
 *
 * @throws RunnerError `invalid-input`; for "/" too, because the page's own files are below it
 */
export function checkBasePath(basePath: unknown): string {
  // Two slashes begin another origin, and so does a slash and a backslash.
  if (typeof basePath === "string" && /^\/(?![/\\])[^?#]*$/.test(basePath)) {
    const { pathname } = new URL(basePath, SOME_ORIGIN);
    const path = pathname.replace(/\/+$/, "");
    if (path !== "") return path;
  }
  throw new RunnerError(
    "invalid-input",
    { field: "basePath" },
    { message: 'basePath must be a path of the origin below "/", like "/api/agents"' },
  );
}

/**
 * Whether a parsed address is `basePath` or below it, in this origin. Parsing has resolved `..` in all its spellings; what
 * stands percent-encoded otherwise is another path.
 *
 * @param basePath from {@link checkBasePath}
 */
export function isBelow(url: URL, basePath: string, origin: string): boolean {
  if (url.origin !== origin) return false;
  return url.pathname === basePath || url.pathname.startsWith(`${basePath}/`);
}
