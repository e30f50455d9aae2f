/** The thread that the address names, `?thread=<id>`. */
export function threadInUrl(): string | undefined {
  const id = new URLSearchParams(location.search).get("thread")?.trim();
  return id === "" ? undefined : id;
}

/** The agent that the address names, `?agent=<id>`; none is Reader. */
export const agentInUrl = (): string | undefined => new URLSearchParams(location.search).get("agent") ?? undefined;

/** The address of a thread with its agent, for links and for the history. */
export function threadUrl(threadId: string, agentId = "reader"): string {
  const url = new URL(location.href);
  url.search = new URLSearchParams({ thread: threadId, ...(agentId !== "reader" && { agent: agentId }) }).toString();
  url.hash = "";
  return url.pathname + url.search;
}
