import { auditTime, buffer, concatMap, filter, from, share, type Observable } from "rxjs";
import type { RunStore, ThreadHead, ThreadRow } from "../storage/run-store.js";
import { checkNumber } from "./checks.js";
import type { ThreadChange, ThreadListQuery, ThreadSummary } from "../wire/shapes.js";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 500;
/** Changes that come closer together are read and told as one, and out of the way of the run that makes them, in ms. */
const TOLD_AFTER_MS = 30;

const summary = (thread: ThreadRow, head: ThreadHead | undefined): ThreadSummary => ({
  ...thread,
  ...(head?.live !== undefined && { live: head.live }),
});

export async function listThreads(store: RunStore, query: ThreadListQuery): Promise<readonly ThreadSummary[]> {
  const { agentId, archived = false } = query;
  const limit = checkNumber("limit", query.limit, DEFAULT_LIMIT, MAX_LIMIT);
  const before = query.before === undefined ? undefined : checkNumber("before", query.before, 0);
  if (limit === 0 || (before !== undefined && before <= 0)) return [];
  const threads = await store.threads({
    limit,
    archived: Boolean(archived),
    ...(before !== undefined && { before }),
    ...(agentId !== undefined && { agentId }),
  });
  const live = new Map((await store.liveHeads()).map((head) => [head.threadId, head]));
  return threads.map((thread) => summary(thread, live.get(thread.threadId)));
}

export async function threadSummary(store: RunStore, threadId: string): Promise<ThreadSummary | undefined> {
  const [thread, head] = await Promise.all([store.thread(threadId), store.head(threadId)]);
  return thread && summary(thread, head);
}

/**
 * The changed threads as they then are, read once for all who watch, one after the other so that an older reading never
 * follows a newer one.
 */
export function threadChanges(
  changed$: Observable<string>,
  read: (threadId: string) => Promise<ThreadSummary | undefined>,
): Observable<ThreadChange> {
  return changed$.pipe(
    buffer(changed$.pipe(auditTime(TOLD_AFTER_MS))),
    concatMap((threadIds) => from(new Set(threadIds))),
    concatMap((threadId) =>
      read(threadId).then(
        (thread): ThreadChange => (thread === undefined ? { type: "deleted", threadId } : { type: "changed", thread }),
        // Told again with the next change.
        () => undefined,
      ),
    ),
    filter((change) => change !== undefined),
    share(),
  );
}
