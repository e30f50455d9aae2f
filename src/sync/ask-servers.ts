import { ringOrSilence } from "../platform/bell.js";
import type { RunnerParts } from "../runner/parts.js";
import { RunnerError } from "../run/errors.js";
import type { DeviceName } from "../storage/devices.js";
import { fromErrorData } from "../wire/errors.js";
import type { AskedRun } from "./asked-run.js";
import type { ClaimMessage, ReleaseMessage } from "./messages.js";
import type { Devices } from "./devices.js";
import { runName } from "./run-name.js";
import { SpaceOffline } from "./space.js";
import type { SyncHost } from "./sync-host.js";
import { isLockOf, NO_ENTRIES } from "./thread-state.js";
import type { ThreadSync } from "./thread-sync.js";

/** How long the servers have to take a run and to begin it, in ms: less than a tab waits for an answer of its host. */
const TAKE_MS = 8_000;
/** How often a run is asked for that servers let go of. */
const MAX_ASKS = 3;
/** What is waited for is looked at this often, in ms, if nothing rings. A server is told to stop as often at first, then less. */
const LOOK_MS = 250;
const TOLD_MS = 5_000;
/** A server that is away for so long is not told to stop any more, in ms. */
const GONE_MS = 5 * 60_000;

export interface AskContext extends Pick<SyncHost, "threadOf" | "isCurrent" | "moved" | "closed"> {
  readonly parts: Pick<RunnerParts, "clock">;
  readonly self: DeviceName;
  readonly devices: Pick<Devices, "askToStop" | "isAway">;
  /** Resolves with the run, once it stands in the log. */
  readonly inLog: () => Promise<unknown>;
}

/**
 * Asks the servers of the space for a run, and waits until it stands in the log of this device. Where this device is out of
 * step, or cannot write it down, it rejects without an answer of the space: what still stands there then is taken back later.
 *
 * @param signal takes the request back; a server that has taken it is asked to stop it. With the reason `closed` neither
 * @returns undefined once it is in the log. A RunnerError `offline` where it is taken back, or was let go of, and no server can
 * still begin it
 * Errors: RunnerError `offline` where one may, or has taken it and does not begin it, or where the connection stays away;
 * `cancelled`, `deleted`, `thread-busy`, `closed`, why a server refused it, or why it cannot be written down
 */
export const askServers = (
  context: AskContext,
  asked: AskedRun,
  signal: AbortSignal,
): Promise<RunnerError | undefined> =>
  new Promise((resolve, reject) => {
    ask(context, asked, signal, reject).then(resolve, reject);
  });

/** See {@link askServers}. @param leave rejects what the caller waits for; what is to be taken back is taken back all the same */
async function ask(
  { parts: { clock }, self, devices, threadOf, inLog, isCurrent, moved, closed }: AskContext,
  asked: AskedRun,
  signal: AbortSignal,
  leave: (error: unknown) => void,
): Promise<RunnerError | undefined> {
  const { request, answerId } = asked;
  const { threadId, agentId, input } = request;
  const { runId } = input;
  const ids = { runId, ...(answerId !== undefined && { answerId }) };
  const name = runName(ids);
  const cancelled = (): RunnerError => new RunnerError("cancelled", { threadId, runId });
  const offline = (message: string): RunnerError => new RunnerError("offline", { threadId, agentId }, { message });
  const add = (thread: ThreadSync, message: ClaimMessage | ReleaseMessage): Promise<boolean> =>
    thread.add(message).catch((error: unknown) => {
      // It may be there or not: that is seen when the connection is there again.
      if (error instanceof SpaceOffline) return false;
      throw error;
    });
  /**
   * What is told may be lost: the server is told until it has ended the run, or lets go of it.
   *
   * @param its the run's name
   */
  const stopAt = async ({ id }: DeviceName, its: string): Promise<void> => {
    let isAway = false;
    let heard = clock.elapsed();
    for (let pause = LOOK_MS; !closed.aborted; pause = Math.min(2 * pause, TOLD_MS)) {
      const thread = await threadOf(threadId).catch(() => "unread" as const);
      if (thread === undefined) return;
      const isKnown = thread !== "unread" && !thread.isReadAnew && isCurrent();
      const { lock, open } = isKnown ? thread.record.state : NO_ENTRIES;
      const hasClaimed =
        lock !== undefined && runName(lock) === its && lock.asks === undefined && lock.device.id === id;
      const opened = Object.hasOwn(open, its) ? open[its] : undefined;
      // It may execute the run, and does not hear of anything until it is back.
      const wasAway = isAway;
      isAway = devices.isAway(id);
      if (isKnown && !hasClaimed && opened?.device.id !== id && !isAway && !wasAway) return;
      if (!isAway) heard = clock.elapsed();
      if (clock.elapsed() - heard >= GONE_MS) return;
      if (!isAway) devices.askToStop(id, { threadId, runId });
      await clock.after(pause, closed);
    }
  };
  let asks = 0;
  /** The thread's deletion that was known when it was asked for. */
  let known: number | undefined;
  /** When the thread was seen to be asked for, or taken, first. */
  let since: number | undefined;
  /** The last server that had claimed it, and the run's name there. */
  let taker: Parameters<typeof stopAt> | undefined;
  /** Since when this device is out of step. */
  let outSince: number | undefined;
  /** The caller has been told, and waits no more. */
  let isLeft = false;
  const leaveWith = (error: unknown): void => {
    isLeft = true;
    leave(error);
  };
  const takenBack = (): RunnerError => {
    // What nobody has stopped may go on, as the caller was told.
    if (taker !== undefined && signal.aborted) void stopAt(...taker);
    return cancelled();
  };
  /** @throws the same, where a server that is away behind its claim may execute it */
  const untaken = (message: string): RunnerError => {
    if (taker !== undefined) throw offline(message);
    return offline(message);
  };
  for (;;) {
    const seen = moved.count;
    const isThere = (await inLog()) !== undefined;
    const thread = await threadOf(threadId).catch(() => "unread" as const);
    if (isThere && !signal.aborted) return undefined;
    // The run goes on without this host.
    if (thread === undefined || closed.aborted || RunnerError.is(signal.reason, "closed"))
      throw new RunnerError("closed", { threadId, runId });
    if (thread === "unread" || thread.isReadAnew || !isCurrent()) {
      outSince ??= clock.elapsed();
      if (signal.aborted) leaveWith(cancelled());
      else if (clock.elapsed() - outSince >= TAKE_MS)
        leaveWith(offline("The space does not answer, and a server may execute the run: ask again, or wait for it"));
      await ringOrSilence(moved, seen, clock, isLeft ? TOLD_MS : LOOK_MS, closed);
      continue;
    }
    outSince = undefined;
    if (thread.failure !== undefined && !signal.aborted) leaveWith(thread.failure);
    const isGone = signal.aborted || isLeft;
    // What was read of the log is older than what is read below.
    if (moved.count !== seen) continue;
    const { lock, open, refused, deleted, lastRun } = thread.record.state;
    // Another answer may have been asked for under the same id: on another device, or here, and taken back.
    const isIts = lock !== undefined && isLockOf(lock, { ...ids, fingerprint: asked.fingerprint });
    const isAsked = isIts && lock.asks !== undefined;
    // It was asked for again since the caller has left.
    if (isLeft && isIts && ((lock.asks ?? lock.asked)?.at ?? 0) > asked.at) throw cancelled();
    // A host before this one may have asked for the same.
    const its = isIts ? runName(lock) : name;
    const opened = Object.hasOwn(open, its) ? open[its] : undefined;
    if (isIts && !isAsked) taker = [lock.device, its];
    // A server that is away behind its claim begins nothing that counts.
    const isTaken = isIts && !isAsked && !devices.isAway(lock.device.id);
    const holder = opened?.device ?? (isTaken ? lock.device : undefined);
    if (isAsked || holder !== undefined) since ??= clock.elapsed();
    if (isGone && holder !== undefined) {
      if (signal.aborted && holder.id !== self.id) void stopAt(holder, its);
      throw cancelled();
    }
    const isLate = since !== undefined && clock.elapsed() - since >= TAKE_MS;
    if (isAsked && (isGone || isLate)) {
      if (await add(thread, { type: "release", threadId, runId, device: self })) {
        if (isGone) throw takenBack();
        return untaken(`No server of the space has taken the run of the agent "${agentId}": ask again`);
      }
    } else if (holder !== undefined && opened === undefined && isLate) {
      throw offline(`The server "${holder.name}" has taken the run, and does not begin it: ask again, or wait for it`);
    } else if (!isAsked && holder === undefined && (isGone || !thread.arrivals.expects(name))) {
      if (isGone) throw takenBack();
      if (asks > 0 && refused?.runId === runId) throw fromErrorData(refused.error);
      if (asks > 0 && deleted === true && lastRun !== known) throw new RunnerError("deleted", { threadId, runId });
      const { heldBy } = thread;
      if (heldBy !== undefined && lock !== undefined)
        throw new RunnerError("thread-busy", { threadId, runId: lock.runId, device: heldBy.name });
      if (asks >= MAX_ASKS) return untaken(`Servers have let go of the run of the agent "${agentId}": ask again`);
      // Its answer may be lost.
      if (asks === 0 && deleted === true) known = lastRun;
      // One that is away behind its claim has not let go of it.
      const counts = asks === 0 || !isIts ? 1 : 0;
      asks += counts;
      since = undefined;
      if (await add(thread, { type: "claim", threadId, ...ids, device: self, asks: asked })) continue;
      // Others have added something: it was not asked for.
      if (isCurrent()) asks -= counts;
    }
    await ringOrSilence(moved, seen, clock, LOOK_MS, closed);
  }
}
