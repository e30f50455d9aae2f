import type { BeforeRequestMiddleware } from "ag-ui-local-runtime/runtime";

export interface AuthorisationOptions {
  /** Who asks, as `authentication` has found out: `(request) => request.headers.get("x-user")`. */
  readonly userOf: (request: Request) => string | null;
  readonly mayUse: (user: string, agentId: string) => boolean | Promise<boolean>;
  /** Asked of threads that are not there yet, too: `(user, threadId) => threadId.startsWith(`${user}.`)`. */
  readonly owns: (user: string, threadId: string) => boolean | Promise<boolean>;
  /** That of the handler. */
  readonly basePath?: string;
}

/**
 * Says who may use which agent, and whose thread is whose. Whatever names no thread of the caller is refused with 403, so
 * also what names none: the list of threads, its changes, clearing them, runs by their id alone. `/info` and `/health` are
 * for all.
 *
 * Its limits: those of `authentication`; and a handler with one endpoint (`mode: "single-route"`) has one path for
 * everything, of which all is refused.
 */
export function authorisation({ userOf, mayUse, owns, basePath = "" }: AuthorisationOptions): BeforeRequestMiddleware {
  return async ({ request, path }) => {
    // Calls of tabs have no base path.
    const route = (path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : path).replace(/\/$/, "");
    if (route === "/info" || route === "/health") return undefined;
    const isOfAll = route === "/threads/clear" || route === "/threads/subscribe";
    const [room, first = "", verb, second] = route.slice(1).split("/").map(decodeURIComponent);
    let threadId: unknown;
    if (room === "threads" && !isOfAll) threadId = first;
    else if (room === "agent" && verb === "stop") threadId = second;
    else if (room === "agent")
      threadId = ((await request.clone().json()) as { readonly threadId?: unknown } | null)?.threadId;

    const user = userOf(request);
    const isAllowed =
      user !== null &&
      (room !== "agent" || (await mayUse(user, first))) &&
      typeof threadId === "string" &&
      threadId !== "" &&
      (await owns(user, threadId));
    return isAllowed ? undefined : Response.json({ error: "Forbidden" }, { status: 403 });
  };
}
