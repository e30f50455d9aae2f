// The list of threads for assistant-ui: `useRemoteThreadListRuntime({ adapter: threadList(runtime, "poet", threadIds()), … })`.
import type { RemoteThreadListAdapter } from "@assistant-ui/react";
import { createAssistantStream } from "assistant-stream";
import type { RuntimeConnection, ThreadSummary } from "ag-ui-local-runtime/client";

/** Ids of threads that begin in this page, by the ids that assistant-ui gives them until then. */
export function threadIds(): (localId: string) => string {
  const known = new Map<string, string>();
  return (localId) => {
    if (!known.has(localId)) known.set(localId, crypto.randomUUID());
    return known.get(localId)!;
  };
}

/** The most that the host lists at a time. */
const LIMIT = 500;

const cursorOf = ({ updatedAt, threadId }: ThreadSummary): string => `${updatedAt} ${threadId}`;

function placeOf(cursor: string): { updatedAt: number; threadId: string } {
  const [updatedAt, ...threadId] = cursor.split(" ");
  return { updatedAt: Number(updatedAt), threadId: threadId.join(" ") };
}

/** The list of threads. A thread begins with its first message, and has its title from there. */
export function threadList(
  { threads }: Pick<RuntimeConnection, "threads">,
  agentId: string,
  idOf: (localId: string) => string,
): RemoteThreadListAdapter {
  const shown = ({ threadId, title, archived, updatedAt }: ThreadSummary) => ({
    remoteId: threadId,
    title,
    status: archived ? ("archived" as const) : ("regular" as const),
    lastMessageAt: new Date(updatedAt),
  });
  return {
    async list({ after } = {}) {
      const before = after === undefined ? {} : { before: placeOf(after) };
      const page = await threads.list({ agentId, limit: LIMIT, ...before });
      const archived = after === undefined ? await threads.list({ agentId, limit: LIMIT, archived: true }) : [];
      const nextCursor = page.length < LIMIT ? undefined : cursorOf(page.at(-1)!);
      return { threads: [...page, ...archived].map(shown), nextCursor };
    },
    async fetch(threadId) {
      const thread = await threads.get(threadId);
      if (thread === undefined) throw new Error(`There is no thread ${threadId}`);
      return shown(thread);
    },
    initialize: async (localId) => ({ remoteId: idOf(localId) }),
    async generateTitle(threadId) {
      const thread = await threads.get(threadId);
      return createAssistantStream((stream) => stream.appendText(thread?.title ?? ""));
    },
    rename: async (threadId, title) => void (await threads.rename(threadId, title)),
    archive: async (threadId) => void (await threads.archive(threadId)),
    unarchive: async (threadId) => void (await threads.archive(threadId, false)),
    delete: (threadId) => threads.delete(threadId),
  };
}
