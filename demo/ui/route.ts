/** The thread that the address names, `?thread=<id>`. */
export function threadInUrl(): string | undefined {
  const id = new URLSearchParams(location.search).get("thread")?.trim();
  return id === "" ? undefined : id;
}

/** The address of a thread, for links and for the history. */
export function threadUrl(threadId: string): string {
  const url = new URL(location.href);
  url.search = new URLSearchParams({ thread: threadId }).toString();
  url.hash = "";
  return url.pathname + url.search;
}
