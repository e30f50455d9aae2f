import { filter, firstValueFrom, map, merge, from } from "rxjs";
import { Bell, ringOrSilence } from "../platform/bell.js";
import type { Clock } from "../platform/clock.js";
import type { HeldLock, Locks } from "../platform/locks.js";
import { hostLifeLockName, threadLockName } from "../platform/names.js";
import { RunnerError } from "../run/errors.js";
import type { RunStore, ThreadHead } from "../storage/run-store.js";
import type { HostChannel, LockMessage } from "./protocol.js";

export interface ClaimParts {
  readonly dbName: string;
  readonly hostId: string;
  readonly locks: Locks;
  readonly channel: HostChannel;
  readonly store: Pick<RunStore, "head">;
  readonly clock: Clock;
}

/** How long a holder has to answer a claim before the head row decides alone, in ms. */
const ANSWER_MS = 100;
/** How long a claim waits for a thread that is settling or being claimed, in ms. */
const SETTLING_MS = 3_000;
/** How long between two tries while nothing is heard, in ms. */
const RETRY_MS = 50;

/** What tells a claim how a taken thread stands. */
const ANSWERS: ReadonlySet<LockMessage["type"]> = new Set<LockMessage["type"]>(["refused", "wait", "started", "ended"]);

/** The first message that matches, or undefined after `ms`. Listens from the call on, before `post` is called. */
async function hear(
  { channel, clock }: ClaimParts,
  matches: (message: LockMessage) => boolean,
  ms: number,
  post?: () => void,
): Promise<LockMessage | undefined> {
  const ended = new AbortController();
  const heard = firstValueFrom(
    merge(channel.messages$.pipe(filter(matches)), from(clock.after(ms, ended.signal)).pipe(map(() => undefined))),
  );
  post?.();
  try {
    return await heard;
  } finally {
    ended.abort();
  }
}

/** How long a run that waits for a busy thread hears nothing before it looks again, in ms. */
const SILENCE_MS = 1_000;

/** Resolves when a run of the thread ended, or may have, or `signal` aborted. */
export async function threadFreed(
  { channel, clock }: Pick<ClaimParts, "channel" | "clock">,
  threadId: string,
  signal: AbortSignal,
): Promise<void> {
  const bell = new Bell();
  const hearing = channel.messages$
    .pipe(filter((message) => message.threadId === threadId && message.type === "ended"))
    .subscribe(() => bell.ring());
  await ringOrSilence(bell, bell.count, clock, SILENCE_MS, signal);
  hearing.unsubscribe();
}

/** True when the host of a live run is dead: whoever has the thread's lock is about to settle it. */
async function isOrphan({ dbName, locks, clock }: ClaimParts, { holder }: ThreadHead): Promise<boolean> {
  if (holder === undefined) return false;
  const looked = new AbortController();
  void clock.after(RETRY_MS, looked.signal).then(() => looked.abort());
  const dead = await locks.whenFree(hostLifeLockName(dbName, holder), looked.signal);
  looked.abort();
  return dead;
}

/**
 * True where another host has a live run of the thread, as far as anybody can tell without Web Locks: the thread's lock is
 * this context's own there and does not say it. The run counts until its holder has been silent for so long that it is
 * settled as broken. Two hosts may both find a thread free: the fence's transaction lets one of them in.
 */
export const runsElsewhere = (
  { locks, hostId }: { readonly locks: Locks; readonly hostId: string },
  head: ThreadHead | undefined,
): boolean => locks.contextOnly === true && head?.live !== undefined && head.holder !== hostId;

/** Undefined where another run of the thread has the lock, or runs in another host. */
async function tryClaim(parts: ClaimParts, threadId: string): Promise<HeldLock | undefined> {
  const { locks, store, dbName } = parts;
  // With Web Locks nobody has to look.
  const head = locks.contextOnly === true ? await store.head(threadId) : undefined;
  return runsElsewhere(parts, head) ? undefined : locks.tryHold(threadLockName(dbName, threadId));
}

/**
 * Takes the thread's lock for a run. Never queues on it (a queued waiter makes the next claim fail).
 *
 * Errors: RunnerError `thread-busy`, with the live `runId` in its details where it is known.
 */
export async function claimThread(parts: ClaimParts, threadId: string, runId: string): Promise<HeldLock> {
  const { store, channel, clock } = parts;
  const deadline = clock.elapsed() + SETTLING_MS;
  for (;;) {
    const lock = await tryClaim(parts, threadId);
    if (lock !== undefined) return lock;

    const isAnswer = (message: LockMessage): boolean => message.threadId === threadId && ANSWERS.has(message.type);
    const [answer, before] = await Promise.all([
      hear(parts, isAnswer, ANSWER_MS, () => channel.post({ type: "claim", threadId, runId })),
      store.head(threadId),
    ]);
    if (answer === undefined || answer.type === "refused" || answer.type === "started") {
      // Nothing heard is believed: the head row says whether a run is live. What was read before the answer may have
      // changed since: a host that settles a dead one's run holds the lock, and tells all hosts but itself.
      const isTold = (head: ThreadHead | undefined): boolean =>
        answer?.runId !== undefined && head?.live?.runId === answer.runId;
      const head = isTold(before) ? before : await store.head(threadId);
      if (head?.live !== undefined && (isTold(head) || !(await isOrphan(parts, head)))) {
        throw new RunnerError("thread-busy", {
          threadId,
          runId: head.live.runId,
          runIndex: head.live.runIndex,
          ...(head.holder !== undefined && { holderId: head.holder }),
        });
      }
    }
    if (clock.elapsed() >= deadline) throw new RunnerError("thread-busy", { threadId });
    if (answer?.type !== "ended") {
      await hear(parts, (message) => message.threadId === threadId && message.type === "ended", RETRY_MS);
    }
  }
}
