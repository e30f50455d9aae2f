import type { BeforeRequestMiddleware } from "ag-ui-local-runtime/runtime";

export interface AuthorisationOptions {
  /** Who asks, as `authentication` has found out: `(request) => request.headers.get("x-user")`. */
  readonly userOf: (request: Request) => string | null;
  readonly mayUse: (user: string, agentId: string) => boolean | Promise<boolean>;
  /**
   * Asked of threads that are not there yet, too: `(user, threadId) => threadId.startsWith(`${user}:`)`. What stands
   * behind the name must not be able to stand in a name, as ":" in the names of `authentication`: else who is called "ada"
   * has the threads of "ada.lovelace".
   */
  readonly owns: (user: string, threadId: string) => boolean | Promise<boolean>;
}

/**
 * Says who may use which agent, and whose thread is whose. A thread is for those who may use each agent that has run in
 * it: else one agent would read what another was told. Whatever names no thread of the caller is refused with 403, so also
 * what names none: the list of threads, its changes, clearing them, runs by their id alone. `/info` and `/health` are for
 * all.
 *
 * Its limits: those of `authentication`; and a thread whose agents nobody can tell (its oldest runs were cut off by
 * `limits`, or the runner is of another make) is refused.
 */
export function authorisation({ userOf, mayUse, owns }: AuthorisationOptions): BeforeRequestMiddleware {
  return async ({ request, resolved }) => {
    const { route, agentId, threadId } = resolved;
    if (route === "info" || route === "health") return undefined;
    const user = userOf(request);
    const isAllowed =
      user !== null &&
      threadId !== undefined &&
      (agentId === undefined || (await mayUse(user, agentId))) &&
      (await owns(user, threadId)) &&
      (await mayUseAll(user, await resolved.agentIds()));
    return isAllowed ? undefined : Response.json({ error: "Forbidden" }, { status: 403 });
  };

  async function mayUseAll(user: string, agentIds: readonly string[] | undefined): Promise<boolean> {
    for (const agentId of agentIds ?? []) if (!(await mayUse(user, agentId))) return false;
    return agentIds !== undefined;
  }
}
