import type { RunFinishedEvent } from "@ag-ui/core";
import { claimThread } from "../lock/claim.js";
import { defined } from "../platform/defined.js";
import type { HeldLock } from "../platform/locks.js";
import { RunnerError } from "../run/errors.js";
import { leftCalls } from "../run/pending-tool-calls.js";
import { lastSeq, sliceChunk } from "../run/pack.js";
import { chunkSize } from "../run/size.js";
import type { Chunk, RunStatus } from "../run/types.js";
import type { Recovery } from "../runner/claim/recovery.js";
import { RunFeed, type FedRun } from "../run/run-feed.js";
import { newThread, type History } from "../runner/history/history.js";
import { RecordedRun } from "../runner/history/recorded-run.js";
import type { RunnerParts } from "../runner/parts.js";
import type { DeviceName } from "../storage/devices.js";
import { answeredIn, hasResult, type LeftByRun } from "../storage/pending-tool-calls.js";
import type { Claim, RunRow, ThreadHead } from "../storage/run-store.js";
import type { EndMessage, RunMessage, SentChunk } from "./messages.js";
import { namedRun } from "./run-name.js";

/** A host of its own beside those that run agents: to all others, the runs that it writes down are another host's. */
export interface MirrorContext {
  readonly parts: RunnerParts;
  readonly history: History;
  readonly recovery: Recovery;
  readonly self: DeviceName;
}

/** Where a run of another device stands: the run before it in this log, and what it began on. */
export interface Base {
  readonly prevRunIndex: number | null;
  readonly recorded: RecordedRun;
}

/** For the list of threads: the clock of another device may be ahead. */
export const notLater = ({ parts }: MirrorContext, time: number): number => Math.min(time, parts.clock.now());

/** What comes before a run is in this log, and has ended. */
export async function isBaseThere({ parts }: MirrorContext, { threadId, prev }: RunMessage): Promise<boolean> {
  if (prev === null) return true;
  const before = await parts.store.runNamed(threadId, namedRun(prev));
  return before !== undefined && before.status !== "running";
}

/**
 * What a run of another device begins on here.
 *
 * @returns undefined where the run before it is not in this log (yet)
 */
export async function baseOf(
  { parts, history }: MirrorContext,
  { threadId, prev, input }: RunMessage,
): Promise<Base | undefined> {
  if (prev === null) return { prevRunIndex: null, recorded: new RecordedRun(newThread(), input) };
  const [run, head] = await Promise.all([parts.store.runNamed(threadId, namedRun(prev)), parts.store.head(threadId)]);
  if (run === undefined || head === undefined || run.status === "running") return undefined;
  return { prevRunIndex: run.runIndex, recorded: new RecordedRun(await history.baseAt(head, run.runIndex), input) };
}

/**
 * A live run of another device, as it is written down here: this host holds the thread, appends what it is told, and
 * settles the run when its end has come. So tabs follow it as they do any run of another host.
 */
export class Mirror {
  /** For tabs of this context; those of other ones read the log. */
  readonly feed: RunFeed;
  private bytes = 0;
  private last: Chunk | undefined;

  private constructor(
    private readonly context: MirrorContext,
    readonly run: RunMessage,
    private readonly claim: Claim,
    private readonly lock: HeldLock,
    private readonly recorded: RecordedRun,
  ) {
    this.feed = new RunFeed(recorded.seq);
    // Stolen by a host that took this one for dead.
    void lock.gone.then(() => this.lose());
  }

  get fed(): FedRun {
    const { feed, claim, run } = this;
    return { runId: run.runId, answerId: run.answerId, runIndex: claim.runIndex, epoch: claim.epoch, feed };
  }

  /** The run is not this host's any more. */
  lose(): void {
    this.feed.lose();
  }

  /** @param head as it is in the log now */
  isIn(head: ThreadHead | undefined): boolean {
    return head?.epoch === this.claim.epoch;
  }

  /**
   * Takes the thread, and puts the run into the log, or goes on with what is there of it.
   *
   * @param isBegun a part of it was written down
   * @returns undefined where the thread is taken by a run of this device, or what comes before the run is not there yet:
   *   try again. The run's status where it has ended here, or is gone
   */
  static async begin(
    context: MirrorContext,
    run: RunMessage,
    isBegun: boolean,
  ): Promise<Mirror | RunStatus | undefined> {
    const { parts, recovery } = context;
    const { threadId, runId } = run;
    const lock = await claimThread(parts, threadId, runId).catch((error: unknown) => {
      if (RunnerError.is(error, "thread-busy")) return undefined;
      throw error;
    });
    if (lock === undefined) return undefined;
    let mirror: Mirror | undefined;
    try {
      const before = await parts.store.head(threadId);
      const head = before?.live === undefined ? before : await recovery.settleOrphan(before, "broken");
      const known = await parts.store.runNamed(threadId, run);
      if (known !== undefined) {
        const begun = await reopened(context, known);
        const { device: its, asker, status } = known;
        // What another server executes in place of this one is put in its place when it is whole.
        const isReplaced = its === undefined && asker !== undefined && status === "stopped";
        if (begun === undefined) return isReplaced ? "broken" : status;
        mirror = new Mirror(context, run, begun.claim, lock, begun.recorded);
      } else if (isBegun) {
        // It is gone with its thread. Where others keep it, everything is read again.
        return "superseded";
      } else {
        const begun = await started(context, run, head);
        // Another run has its id.
        if (begun === "exists") return "superseded";
        mirror = begun && new Mirror(context, run, begun.claim, lock, begun.recorded);
      }
      if (mirror !== undefined) {
        parts.channel.post({ type: "started", threadId, runId, runIndex: mirror.claim.runIndex });
      }
      return mirror;
    } finally {
      if (mirror === undefined) await lock.release();
    }
  }

  /**
   * Appends events. Those that are here already are left out.
   *
   * @returns whether somebody here asks the run to stop. Errors: RunnerError `fenced`
   */
  async append(chunks: readonly SentChunk[]): Promise<boolean> {
    const { store, channel } = this.context.parts;
    const { threadId, runId } = this.claim;
    let stops = false;
    for (const sent of chunks) {
      const chunk = this.rest(sent);
      if (chunk === undefined) continue;
      const { stop } = await store.append(this.claim, chunk);
      this.recorded.applyChunk(chunk);
      this.bytes += chunkSize(chunk);
      this.feed.publish(chunk);
      stops ||= stop !== undefined;
      channel.post({ type: "advanced", threadId, runId, seq: lastSeq(chunk) });
    }
    return stops;
  }

  /** Settles the run as its device did. */
  async end(end: EndMessage): Promise<void> {
    const { status, endedAt, chunk } = end;
    const { recorded, claim } = this;
    const { store, channel } = this.context.parts;
    const { threadId, runId, runIndex } = claim;
    // A second try has applied it already.
    const last = this.last ?? this.rest(chunk);
    // Nothing but the end can be missing.
    if (last === undefined) throw new RunnerError("corrupt-record", { threadId, runId, store: "chunks" });
    if (this.last === undefined) recorded.applyChunk(last);
    this.last = last;
    await store.settle(claim, {
      status,
      endedAt,
      listedAt: notLater(this.context, endedAt),
      chunk: last,
      ownTerminal: true,
      closing: recorded.closing(),
      derived: recorded.derived(),
      left: leftOn(this.context, this.run, end) ?? this.left(status, last),
      bytes: this.bytes + chunkSize(last),
    });
    await this.lock.release();
    this.feed.publish(last);
    this.feed.settled(status);
    channel.post({ type: "ended", threadId, runId, runIndex });
  }

  /** The calls that it leaves to the tabs of this device, if it was asked for here: a server of an older version names none. */
  private left(status: RunStatus, { entries }: Chunk): LeftByRun | undefined {
    const { asker, agentId } = this.run;
    if (status !== "finished" || asker?.id !== this.context.self.id) return undefined;
    const { recorded, context } = this;
    const { outcome } = (entries.at(-1)?.event ?? {}) as Partial<RunFinishedEvent>; // its status says so
    const left = leftCalls(recorded.start.messages, recorded.content.messages, new Set(asker.tools), outcome);
    if (left.unanswered.size === 0) return undefined;
    return { ...left, nextRunId: context.parts.makeId(), ...(agentId !== undefined && { agentId }) };
  }

  /** Nobody hears from its device any more: it is broken for now, and goes on here when its device does. */
  async breakOff(why: string): Promise<void> {
    const { parts, recovery } = this.context;
    try {
      const head = await parts.store.head(this.claim.threadId);
      if (head?.live?.runId === this.claim.runId && head.holder === parts.hostId) {
        await recovery.settleOrphan(head, "broken", why);
      }
    } finally {
      await this.letGo();
    }
  }

  /** Leaves the run as it is, live in the log, for the next host. */
  async letGo(): Promise<void> {
    await this.lock.release();
    this.lose();
  }

  /** What is not here yet of a chunk. */
  private rest(sent: SentChunk): Chunk | undefined {
    const { threadId, runIndex, epoch } = this.claim;
    return sliceChunk({ ...sent, threadId, runIndex, epoch }, this.recorded.seq + 1);
  }
}

/** The tool calls that a run of another device leaves, as that device says. */
export function leftOn(
  { parts, self }: MirrorContext,
  { agentId, asker, device }: RunMessage,
  { left }: EndMessage,
): LeftByRun | undefined {
  if (left === undefined || left.length === 0) return undefined;
  return {
    made: left,
    unanswered: new Set(left.map(({ toolCallId }) => toolCallId)),
    nextRunId: parts.makeId(),
    ...(agentId !== undefined && { agentId }),
    ...((asker ?? device).id !== self.id && { elsewhere: true }),
  };
}

/** What of its device's message stands in the row of a run: nothing else that anybody may have added. */
export const rowOf = (run: RunMessage) => {
  const { threadId, runId, startedAt, input, fingerprint, title, device } = run;
  const { answerId, agentId, parentRunId, attempt } = run;
  const more = defined({ answerId, agentId, parentRunId, attempt });
  return { threadId, runId, startedAt, input, fingerprint, title, device, ...more };
};

interface Begun {
  readonly claim: Claim;
  readonly recorded: RecordedRun;
}

/** The claim of a run that this log does not have. */
async function started(
  context: MirrorContext,
  run: RunMessage,
  head: ThreadHead | undefined,
): Promise<Begun | "exists" | undefined> {
  const { parts } = context;
  const { threadId, runId, startedAt, input, asker } = run;
  const base = await baseOf(context, run);
  if (base === undefined) return undefined;
  const { prevRunIndex, recorded } = base;
  const isThere = head !== undefined && head.deleted !== true;
  // It waited here, until a server was there or until this host could go on with a broken one.
  if (await parts.store.removeWaiting(threadId, runId)) {
    parts.channel.post({ type: "changed", threadId, waiting: true });
  }
  const continues = isThere && head.activeRunIndex === prevRunIndex;
  const result = await parts.store.claim({
    ...rowOf(run),
    holder: parts.hostId,
    listedAt: notLater(context, startedAt),
    base: isThere ? { activeRunIndex: head.activeRunIndex, epoch: head.epoch } : undefined,
    prevRunIndex,
    ...(continues && {
      toolCallIds: answeredIn(head)
        .filter(hasResult(input.messages))
        .map(({ toolCallId }) => toolCallId),
    }),
    ...(asker !== undefined && { asker }),
  });
  if (result.is === "exists") return "exists";
  return result.is === "claimed" ? { claim: result.claim, recorded } : undefined;
}

/** The claim of a run that is in this log, and was broken off here. @returns undefined where its end stands */
async function reopened(
  { parts, history }: MirrorContext,
  { threadId, runIndex, device, status }: RunRow,
): Promise<Begun | undefined> {
  if (device === undefined || status !== "broken") return undefined;
  const claim = await parts.store.reopen(threadId, runIndex, parts.hostId);
  const head = await parts.store.head(threadId);
  if (claim === undefined || head === undefined) return undefined;
  return { claim, recorded: await history.viewOf(head, runIndex) };
}
