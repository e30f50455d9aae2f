import { filter, firstValueFrom, from, map, merge } from "rxjs";
import { abortWith } from "../platform/abort.js";
import type { Clock } from "../platform/clock.js";
import { freeWithin, type HeldLock, type Locks } from "../platform/locks.js";
import { hostLifeLockName, threadLockName } from "../platform/names.js";
import { RunnerError } from "../run/errors.js";
import type { RunStore, ThreadHead } from "../storage/run-store.js";
import type { HostChannel, LockMessage, LockMessageType } from "./protocol.js";

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
/** Interval between two claims if no message arrives, in ms. */
const RETRY_MS = 50;
/** Retry interval of a run that waits for a busy thread, if no message arrives, in ms. */
const SILENCE_MS = 1_000;

/** Message types that report the state of a taken thread to a claim. */
const ANSWERS: readonly LockMessageType[] = ["refused", "wait", "started", "ended"];

/** The first message of these types about the thread; undefined after `ms`, or when `signal` aborts. Listens from the call on. */
async function hear(
  { channel, clock }: Pick<ClaimParts, "channel" | "clock">,
  threadId: string,
  types: readonly LockMessageType[],
  ms: number,
  ...signals: readonly AbortSignal[]
): Promise<LockMessage | undefined> {
  const ended = abortWith(...signals);
  const heard = channel.messages$.pipe(
    filter((message) => message.threadId === threadId && types.includes(message.type)),
  );
  const silence = from(clock.after(ms, ended.signal)).pipe(map(() => undefined));
  try {
    return await firstValueFrom(merge(heard, silence));
  } finally {
    ended.abort();
  }
}

/** Resolves when a run of the thread ended, or may have, or `signal` aborted. */
export async function threadFreed(
  parts: Pick<ClaimParts, "channel" | "clock">,
  threadId: string,
  signal: AbortSignal,
): Promise<void> {
  await hear(parts, threadId, ["ended"], SILENCE_MS, signal);
}

/** Whether the host of a live run is dead. If so, the current holder of the thread's lock is about to settle the run. */
async function isOrphan({ dbName, locks, clock }: ClaimParts, { holder }: ThreadHead): Promise<boolean> {
  return holder !== undefined && freeWithin(locks, hostLifeLockName(dbName, holder), RETRY_MS, clock);
}

/**
 * Without Web Locks: whether another host has a live run of the thread. The thread's lock then excludes only this
 * context. The run counts as live until its holder has been silent for so long that the run is settled as broken. If
 * two hosts find a thread free, the fence's transaction admits one of them.
 */
export const runsElsewhere = (
  { locks, hostId }: { readonly locks: Locks; readonly hostId: string },
  head: ThreadHead | undefined,
): boolean => locks.contextOnly === true && head?.live !== undefined && head.holder !== hostId;

/** Undefined if another run of the thread has the lock, or another host runs one. */
async function tryClaim(parts: ClaimParts, threadId: string): Promise<HeldLock | undefined> {
  const { locks, store, dbName } = parts;
  // With Web Locks the lock alone decides, without a read.
  const head = locks.contextOnly === true ? await store.head(threadId) : undefined;
  // L5: one lock per thread, across all hosts; a claim neither queues for it nor steals it.
  return runsElsewhere(parts, head) ? undefined : locks.tryHold(threadLockName(dbName, threadId));
}

/**
 * Takes the thread's lock for a run. Never queues on it (a queued waiter makes the next claim fail).
 *
 * Errors: RunnerError `thread-busy`, with the live `runId`, and the `device` that executes it if it is another one, in its
 * details if they are known.
 */
export async function claimThread(parts: ClaimParts, threadId: string, runId: string): Promise<HeldLock> {
  const { store, channel, clock } = parts;
  const deadline = clock.elapsed() + SETTLING_MS;
  for (;;) {
    // Read before the attempt: a host that was frozen past the deadline tries once more.
    const isLast = clock.elapsed() >= deadline;
    const lock = await tryClaim(parts, threadId);
    if (lock !== undefined) return lock;

    const answering = hear(parts, threadId, ANSWERS, ANSWER_MS);
    channel.post({ type: "claim", threadId, runId });
    const [answer, before] = await Promise.all([answering, store.head(threadId)]);
    if (answer === undefined || answer.type === "refused" || answer.type === "started") {
      // Messages are not trusted: the head row decides. It may have changed between its read and the answer: a host that
      // settles a dead host's run holds the lock and notifies all hosts except itself, so read the row again.
      const isTold = (head: ThreadHead | undefined): boolean =>
        answer?.runId !== undefined && head?.live?.runId === answer.runId;
      const head = isTold(before) ? before : await store.head(threadId);
      if (head?.live !== undefined && (isTold(head) || !(await isOrphan(parts, head)))) {
        throw new RunnerError("thread-busy", {
          threadId,
          runId: head.live.runId,
          runIndex: head.live.runIndex,
          ...(head.holder !== undefined && { holderId: head.holder }),
          ...(head.live.device !== undefined && { device: head.live.device.name }),
        });
      }
    }
    if (isLast) throw new RunnerError("thread-busy", { threadId });
    if (answer?.type !== "ended") await hear(parts, threadId, ["ended"], RETRY_MS);
  }
}
