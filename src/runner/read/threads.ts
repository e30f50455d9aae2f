import { auditTime, buffer, concatMap, filter, map, merge, share, type Observable } from "rxjs";
import { defined } from "../../platform/defined.js";
import { invalidInput, RunnerError } from "../../run/errors.js";
import { checkNames, FLAG, TEXT, type Names } from "../../run/options.js";
import type { ThreadPlace } from "../../run/thread-order.js";
import type { ThreadUpdate } from "../../run/types.js";
import type { RunRow, RunStore, ThreadHead, ThreadRow } from "../../storage/run-store.js";
import { toErrorData } from "../../wire/errors.js";
import { checkNumber } from "../checks.js";
import type { Signals } from "../live/signals.js";
import type { ThreadChange, ThreadListQuery, ThreadSummary } from "../../wire/shapes.js";

const QUERY: Names<ThreadListQuery> = { limit: true, before: true, agentId: TEXT, archived: FLAG };
const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 500;
/** Changes within this time (ms) are read and reported as one, out of the way of the run that makes them. */
const TOLD_AFTER_MS = 30;

/** A run is over but still live in the log, because its end cannot be written. */
type IsOver = (threadId: string, run: Pick<RunRow, "runId" | "runIndex">) => boolean;

const summary = (
  { named: _named, ...thread }: ThreadRow,
  head: ThreadHead | undefined,
  isOver: IsOver,
): ThreadSummary => ({
  ...thread,
  ...(head?.live !== undefined && !isOver(head.threadId, head.live) && { live: head.live }),
});

export async function listThreads(
  store: RunStore,
  query: ThreadListQuery,
  isOver: IsOver,
): Promise<readonly ThreadSummary[]> {
  checkNames(query, QUERY, { of: "listThreads" });
  const { agentId, archived = false } = query;
  const limit = checkNumber("limit", query.limit, DEFAULT_LIMIT, MAX_LIMIT);
  const before = query.before === undefined ? undefined : placeOf(query.before);
  const isFirst = before !== undefined && (before.updatedAt < 0 || (before.updatedAt === 0 && before.threadId === ""));
  if (limit === 0 || isFirst) return [];
  await store.readable?.();
  // In this order, a run that ends in between shows as live until the next change, never as neither live nor ended.
  const live = new Map((await store.liveHeads()).map((head) => [head.threadId, head]));
  const threads = await store.threads({ limit, archived, ...defined({ before, agentId }) });
  return threads.map((thread) => summary(thread, live.get(thread.threadId), isOver));
}

const NO_PLACE = "before must be a thread of the list, or a number";

/** @throws RunnerError `invalid-input` */
function placeOf(before: unknown): ThreadPlace {
  const { updatedAt, threadId } =
    typeof before === "object" && before !== null
      ? (before as Partial<ThreadPlace>)
      : { updatedAt: before, threadId: "" };
  if (typeof threadId !== "string") throw invalidInput("before", NO_PLACE);
  // As the list has it: rounded, it would be another place.
  if (typeof updatedAt !== "number" || Number.isNaN(updatedAt)) throw invalidInput("before", NO_PLACE);
  return { updatedAt, threadId };
}

export async function hasNoThreads(store: RunStore): Promise<boolean> {
  const found = await Promise.all([false, true].map((archived) => store.threads({ limit: 1, archived })));
  return found.every((threads) => threads.length === 0);
}

export async function threadSummary(
  store: RunStore,
  threadId: string,
  isOver: IsOver,
): Promise<ThreadSummary | undefined> {
  await store.readable?.();
  const head = await store.head(threadId);
  const thread = await store.thread(threadId);
  return thread && summary(thread, head, isOver);
}

/**
 * @param update checked
 * @throws RunnerError `unknown-thread`
 */
export async function updateThread(
  store: RunStore,
  threadId: string,
  update: ThreadUpdate,
  isOver: IsOver,
): Promise<ThreadSummary> {
  if (isEmpty(update)) await store.readable?.();
  const head = await store.head(threadId);
  const thread = isEmpty(update) ? await store.thread(threadId) : await store.updateThread(threadId, update);
  if (thread === undefined) throw new RunnerError("unknown-thread", { threadId });
  return summary(thread, head, isOver);
}

/** It changes nothing. */
export const isEmpty = (update: ThreadUpdate): boolean => Object.keys(update).length === 0;

/**
 * Changed threads, read once for all watchers and one after the other, so that an older read never follows a newer one.
 */
export function threadChanges(
  { changed$, anew$ }: Pick<Signals, "changed$" | "anew$">,
  read: (threadId: string) => Promise<ThreadSummary | undefined>,
): Observable<ThreadChange> {
  // Waiting runs are no part of the list.
  const listed$ = changed$.pipe(filter(({ waits }) => !waits));
  const changes$ = listed$.pipe(
    buffer(listed$.pipe(auditTime(TOLD_AFTER_MS))),
    concatMap((touched) => {
      const deleted = new Map<string, boolean>();
      for (const { threadId, isDeleted } of touched) deleted.set(threadId, isDeleted || deleted.get(threadId) === true);
      return deleted;
    }),
    concatMap(([threadId, isDeleted]): Promise<readonly ThreadChange[]> => {
      const gone: ThreadChange = { type: "deleted", threadId };
      // If it has begun anew since, that is another thread.
      const before = isDeleted ? [gone] : [];
      return read(threadId).then(
        (thread) => (thread === undefined ? [gone] : [...before, { type: "changed", thread }]),
        // The next change reports it again.
        () => before,
      );
    }),
    concatMap((changes) => changes),
  );
  const all$ = anew$.pipe(
    map((error): ThreadChange => ({ type: "anew", ...(error !== undefined && { error: toErrorData(error) }) })),
  );
  return merge(changes$, all$).pipe(share());
}
