import type { BeforeRequestMiddleware, ResolvedRequest } from "ag-ui-local-runtime/runtime";

export interface RateLimitOptions {
  /** So many requests of a caller each minute, in the long run. */
  readonly perMinute: number;
  /** So many at once, after a pause. Default: those of a minute. */
  readonly burst?: number;
  /** Whose request it is. Default: all are one caller's. */
  readonly callerOf?: (request: Request) => string;
  /** Which requests are counted: `({ route }) => route === "agent/run"`. Default: all. */
  readonly counts?: (resolved: ResolvedRequest) => boolean;
  /** A clock that never goes back, in ms. */
  readonly now?: () => number;
}

/** Callers that are remembered at most; who has been silent for longest is forgotten first, and begins anew. */
const MAX_CALLERS = 10_000;

/**
 * A token bucket for each caller: what is too much gets 429 and is told in `retry-after` (seconds) when to come back. A tab
 * finds that in its error's `details.retryAfter`.
 *
 * Its limit: each host counts for itself, and a host that starts anew begins anew. A page that opens several threads makes
 * several calls at once, so leave room for that, or count only runs (`counts`).
 */
export function rateLimit(options: RateLimitOptions): BeforeRequestMiddleware {
  const { perMinute, burst = perMinute, callerOf = () => "", counts = () => true } = options;
  const { now = () => performance.now() } = options;
  const perMs = perMinute / 60_000;
  const buckets = new Map<string, { readonly tokens: number; readonly at: number }>();
  return ({ request, resolved }) => {
    if (!counts(resolved)) return undefined;
    const caller = callerOf(request);
    const at = now();
    const before = buckets.get(caller) ?? { tokens: burst, at };
    const tokens = Math.min(burst, before.tokens + (at - before.at) * perMs);
    const isAllowed = tokens >= 1;
    buckets.delete(caller);
    buckets.set(caller, { tokens: isAllowed ? tokens - 1 : tokens, at });
    if (buckets.size > MAX_CALLERS) buckets.delete(buckets.keys().next().value!);
    if (isAllowed) return undefined;
    const seconds = Math.ceil((1 - tokens) / perMs / 1_000);
    return Response.json({ error: "Too many requests" }, { status: 429, headers: { "retry-after": String(seconds) } });
  };
}
