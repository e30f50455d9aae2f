import { ringOrSilence, type Bell } from "../platform/bell.js";
import type { RunnerParts } from "../runner/parts.js";
import { RunnerError } from "../run/errors.js";
import type { DeviceName } from "../storage/devices.js";
import { fromErrorData } from "../wire/errors.js";
import type { AskedRun } from "./asked-run.js";
import type { ClaimMessage, ReleaseMessage } from "./messages.js";
import type { Devices } from "./devices.js";
import { runName } from "./run-name.js";
import { SpaceOffline } from "./space.js";
import { NO_ENTRIES } from "./thread-state.js";
import type { ThreadSync } from "./thread-sync.js";

/** How long the servers have to take a run and to begin it, in ms: less than a tab waits for an answer of its host. */
const TAKE_MS = 8_000;
/** How often a run is asked for that servers let go of. */
const MAX_ASKS = 3;
/** What is waited for is looked at this often, in ms, if nothing rings. A server is told to stop as often at first, then less. */
const LOOK_MS = 250;
const TOLD_MS = 5_000;

export interface AskContext {
  readonly parts: Pick<RunnerParts, "clock">;
  readonly self: DeviceName;
  readonly devices: Pick<Devices, "askToStop" | "isAway">;
  /** The thread, as the space has it now: it is another one after the space has begun anew. Undefined: this host leaves the space. */
  readonly threadOf: (threadId: string) => Promise<ThreadSync | undefined>;
  /** Resolves with the run, once it stands in the log. */
  readonly inLog: () => Promise<unknown>;
  /** Everything that others have added is known. */
  readonly isCurrent: () => boolean;
  /** Rings when an entry was read or written down. */
  readonly moved: Bell;
  /** Aborts when this host leaves the space. */
  readonly closed: AbortSignal;
}

/**
 * Asks the servers of the space for a run, and waits until it stands in the log of this device.
 *
 * @param signal takes the request back; a server that has taken it is asked to stop it. With the reason `closed` neither
 * @returns undefined once it is in the log. A RunnerError `offline` where it is taken back, or was let go of, and no server can
 * still begin it
 * Errors: RunnerError `offline` where one may, or has taken it and does not begin it, `cancelled`, `deleted`, `thread-busy`,
 * `closed`, or why a server refused it
 */
export async function askServers(
  { parts: { clock }, self, devices, threadOf, inLog, isCurrent, moved, closed }: AskContext,
  asked: AskedRun,
  signal: AbortSignal,
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
    for (let pause = LOOK_MS; !closed.aborted; pause = Math.min(2 * pause, TOLD_MS)) {
      const thread = await threadOf(threadId).catch(() => undefined);
      const { lock, open } = thread?.record.state ?? NO_ENTRIES;
      const hasClaimed =
        lock !== undefined && runName(lock) === its && lock.asks === undefined && lock.device.id === id;
      const opened = Object.hasOwn(open, its) ? open[its] : undefined;
      // It may execute the run, and does not hear of anything until it is back.
      const wasAway = isAway;
      isAway = devices.isAway(id);
      if (!hasClaimed && opened?.device.id !== id && !isAway && !wasAway) return;
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
  const takenBack = (): RunnerError => {
    if (taker !== undefined) void stopAt(...taker);
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
    if (thread === "unread") {
      if (signal.aborted) throw cancelled();
      await clock.after(LOOK_MS, closed);
      continue;
    }
    // What stands in the space is released when this device is in step again, or executed meanwhile.
    if (signal.aborted && !isCurrent()) throw cancelled();
    // What was read of the log is older than what is read below.
    if (moved.count !== seen) continue;
    if (isCurrent()) {
      const { lock, open, refused, deleted, lastRun } = thread.record.state;
      // Somebody may have asked for another answer under the same id, and have taken that back while the space was away.
      const isIts = lock?.runId === runId && (lock.asks === undefined || lock.asks.fingerprint === asked.fingerprint);
      const isAsked = isIts && lock.asks !== undefined;
      // A host before this one may have asked for the same.
      const its = isIts ? runName(lock) : name;
      const opened = Object.hasOwn(open, its) ? open[its] : undefined;
      if (isIts && !isAsked) taker = [lock.device, its];
      // A server that is away behind its claim begins nothing that counts.
      const isTaken = isIts && !isAsked && !devices.isAway(lock.device.id);
      const holder = opened?.device ?? (isTaken ? lock.device : undefined);
      if (isAsked || holder !== undefined) since ??= clock.elapsed();
      if (signal.aborted && holder !== undefined) {
        void stopAt(holder, its);
        throw cancelled();
      }
      const isLate = since !== undefined && clock.elapsed() - since >= TAKE_MS;
      if (isAsked && (signal.aborted || isLate)) {
        if (await add(thread, { type: "release", threadId, runId, device: self })) {
          if (signal.aborted) throw takenBack();
          return untaken(`No server of the space has taken the run of the agent "${agentId}": ask again`);
        }
      } else if (holder !== undefined && opened === undefined && isLate) {
        throw offline(
          `The server "${holder.name}" has taken the run, and does not begin it: ask again, or wait for it`,
        );
      } else if (!isAsked && holder === undefined && !thread.expects(name)) {
        if (signal.aborted) throw takenBack();
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
    }
    await ringOrSilence(moved, seen, clock, LOOK_MS, closed);
  }
}
