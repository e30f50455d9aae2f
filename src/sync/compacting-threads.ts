import { equalJson } from "../run/json.js";
import { messageOf } from "../run/errors.js";
import { compact, type ReadEntry } from "./compaction.js";
import { messageIn, NotUnderstood, type WholeMessage } from "./messages.js";
import { briefOf } from "./outgoing.js";
import { SpaceOffline } from "./space.js";
import type { ThreadRecord } from "./sync-database.js";
import type { SyncHost } from "./sync-host.js";
import type { ThreadSync } from "./thread-sync.js";

/** How long after a change of a thread its entries may be joined, in ms: as long, and up to as long again by chance. */
export const REST_MS = 30_000;
/** Fewer entries of a thread than this are not joined. */
const FEWEST = 64;
/** Threads whose entries have more bytes than this stay as they are: all of them are in memory at once. */
const MOST_BYTES = 64 * 1_024 * 1_024;

/**
 * Keeps the space small: many entries of a thread at rest become one, and those of a deleted thread are removed. Any device of
 * the space that may remove entries does it; of several that do it at once, one wins.
 */
export class CompactingThreads {
  private changed = new Set<string>();
  /** Threads that turned out to be larger than is known of them. */
  private readonly tooLarge = new Set<string>();
  private isLooking = false;
  private isRefused: boolean;

  constructor(private readonly of: SyncHost) {
    this.isRefused = of.space.remove === undefined;
  }

  /** Something was added to it. */
  look({ record }: ThreadSync): void {
    if (this.isRefused || !this.isDue(record)) return;
    this.changed.add(record.threadId);
    if (this.isLooking) return;
    this.isLooking = true;
    void this.lookNow().finally(() => (this.isLooking = false));
  }

  private async lookNow(): Promise<void> {
    const { parts, closed, isCurrent, openOf } = this.of;
    while (this.changed.size > 0) {
      const { changed } = this;
      this.changed = new Set();
      await parts.clock.after(REST_MS * (1 + Math.random()), closed);
      for (const threadId of changed) {
        if (closed.aborted || this.isRefused) return;
        const thread = openOf(threadId);
        if (thread === undefined || !this.isDue(thread.record)) continue;
        if (this.changed.has(threadId) || !isCurrent() || !isAtRest(thread)) this.changed.add(threadId);
        // What cannot be done now is tried again when the thread has changed, or by the next host.
        else await this.compact(thread).catch((error: unknown) => this.failed(threadId, error));
      }
    }
  }

  private failed(threadId: string, error: unknown): void {
    if (error instanceof SpaceOffline || this.of.closed.aborted) return;
    if (error instanceof NotUnderstood) return this.of.refuse(error.message);
    this.of.parts.logger.warn(`${threadId}: its entries in the space are not joined: ${messageOf(error)}`);
  }

  private async compact(thread: ThreadSync): Promise<void> {
    const { space, parts, self } = this.of;
    const { key } = thread;
    const { threadId, since } = thread.record;
    if ((await space.remove?.(key, 0)) !== true) return void (this.isRefused = true);
    if (since?.remains !== undefined) return this.remove(thread, since.remains);
    const compacted = compact(await this.read(thread));
    // Not before: what changes it may be among the entries.
    const row = await parts.store.thread(threadId);
    const { state } = thread.record;
    // Something was added meanwhile, or was read here and is not there.
    if (compacted === undefined || !isAtRest(thread) || !equalJson(compacted.state, state)) return;
    const from = { threadId, device: self() };
    const brief = row === undefined || row.absent === true ? {} : { brief: briefOf(row) };
    const { entries } = compacted;
    const whole: WholeMessage = {
      type: "whole",
      upTo: state.last,
      entries,
      ...(state.deleted === true ? { counts: true } : brief),
      ...from,
    };
    const seq = await thread.place(whole);
    if (seq === undefined) return;
    await this.remove(thread, seq);
    // Whoever lists threads by their last entries need not read this one.
    if (state.deleted !== true) await thread.add({ type: "thread", ...brief, ...from });
  }

  /** @param below the seq of the entry that stands for those before it */
  private async remove(thread: ThreadSync, below: number): Promise<void> {
    await this.of.space.remove?.(thread.key, below);
    thread.entries.removed();
  }

  private async read({ key, record }: ThreadSync): Promise<readonly ReadEntry[]> {
    const { threadId, state } = record;
    const entries: ReadEntry[] = [];
    let bytes = 0;
    for await (const { seq, body, after } of this.of.space.entries(key, this.of.closed)) {
      const message = messageIn({ seq, body }, threadId);
      if (state.deleted === true) entries.push({ seq, message: withoutEvents(message), after });
      else if ((bytes += body.length) > MOST_BYTES) {
        this.tooLarge.add(threadId);
        return [];
      } else entries.push({ seq, message, after });
    }
    return entries;
  }

  /** What was added is at least as much as what it would be joined with, so each byte is sent about twice. */
  private isDue({ threadId, state, since }: ThreadRecord): boolean {
    if (since === undefined || this.tooLarge.has(threadId)) return false;
    const { entries, bytes, whole, remains } = since;
    if (state.deleted === true) return entries > 0 || remains !== undefined;
    return entries >= (this.of.compactFrom ?? FEWEST) && bytes >= whole && bytes + whole <= MOST_BYTES;
  }
}

/** Nothing of it is needed where the thread is deleted, however much there was. */
const withoutEvents = (message: ReadEntry["message"]): ReadEntry["message"] =>
  message?.type === "events"
    ? { ...message, chunks: message.chunks.map((chunk) => ({ ...chunk, entries: [] })) }
    : message;

/** Nothing goes on in it that is to be seen in its entries. */
function isAtRest({ isInSpace, record }: ThreadSync): boolean {
  const { active, deleted, refused } = record.state;
  return isInSpace && refused === undefined && (active !== null || deleted === true);
}
