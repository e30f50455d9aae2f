/**
 * Which headers of a request its agent sends on: by default `x-*`, without those that proxies and platforms add, and
 * without the caller's credentials (`authorization`, `x-api-key`, `x-auth-token`, `x-access-token`, `x-csrf-token`,
 * `x-xsrf-token`), which go to the agent's server only where `allow` has them. What `Connection` lists is for this
 * connection alone. The agent's own headers win.
 */
export interface ForwardHeadersOptions {
  /** Drop headers that proxies and platforms add. Default true. */
  readonly useDefaultDenylist?: boolean;
  /** Names never forwarded, even if `allow` lists them. */
  readonly deny?: readonly string[];
  /** Prefixes of such names. */
  readonly denyPrefixes?: readonly string[];
  /** Forwards only these, whatever their name; an empty list forwards none. The only way to forward credentials. */
  readonly allow?: readonly string[];
}

/** They are for this runtime, not for its agents' servers. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  "authorization",
  "x-access-token",
  "x-api-key",
  "x-auth-token",
  "x-csrf-token",
  "x-xsrf-token",
]);

const DENIED_NAMES: ReadonlySet<string> = new Set([
  "x-cache",
  "x-cloud-trace-context",
  "x-real-ip",
  "x-request-id",
  "x-served-by",
]);
const DENIED_PREFIXES = [
  "x-amz-",
  "x-amzn-",
  "x-azure-",
  "x-copilotcloud-",
  "x-fastly-",
  "x-forwarded-",
  "x-goog-",
  "x-middleware-",
  "x-ms-",
  "x-vercel-",
];

const namesOf = (entries: readonly string[] | undefined): readonly string[] =>
  (entries ?? []).map((entry) => entry.trim().toLowerCase()).filter((entry) => entry !== "");

/** @returns a function that merges the agent's own headers, which win, with the request headers to forward */
export function forwardedHeaders(
  options: ForwardHeadersOptions = {},
): (own: Readonly<Record<string, string>>, headers: Headers) => Record<string, string> {
  const deny = new Set(namesOf(options.deny));
  const denyPrefixes = namesOf(options.denyPrefixes);
  const allow = options.allow && new Set(namesOf(options.allow));
  const { useDefaultDenylist = true } = options;
  const isDenied = (name: string): boolean => deny.has(name) || denyPrefixes.some((prefix) => name.startsWith(prefix));
  const isAdded = (name: string): boolean =>
    useDefaultDenylist && (DENIED_NAMES.has(name) || DENIED_PREFIXES.some((prefix) => name.startsWith(prefix)));
  const isForwarded = (name: string): boolean => {
    if (isDenied(name)) return false;
    if (allow !== undefined) return allow.has(name);
    return name.startsWith("x-") && !CREDENTIALS.has(name) && !isAdded(name);
  };
  return (own, headers) => {
    // Two spellings of a name would become one header with two values.
    const names = new Set(Object.keys(own).map((name) => name.toLowerCase()));
    // https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1
    for (const name of namesOf(headers.get("connection")?.split(","))) names.add(name);
    const forwarded = [...headers].filter(([name]) => !names.has(name) && isForwarded(name));
    return { ...own, ...Object.fromEntries(forwarded) };
  };
}
