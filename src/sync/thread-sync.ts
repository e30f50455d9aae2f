import { abortWith } from "../platform/abort.js";
import { Bell, ringOrSilence } from "../platform/bell.js";
import { inTime } from "../platform/clock.js";
import { messageOf } from "../run/errors.js";
import type { DeviceName } from "../storage/devices.js";
import type { Arrivals } from "./arrivals.js";
import { freshFor, isFresh } from "./asked-run.js";
import { encodeMessage, NotUnderstood, type SpaceMessage } from "./messages.js";
import { reconcile } from "./log-changes.js";
import { briefOf } from "./outgoing.js";
import { passedOver } from "./record-changes.js";
import { restoreThread } from "./restore-thread.js";
import { Sender, type SenderContext } from "./sender.js";
import { SpaceOffline, type Space, type SpaceEntry } from "./space.js";
import type { ThreadRecord } from "./sync-database.js";
import { ThreadEntries, type EntriesContext } from "./thread-entries.js";
import type { SpaceLock } from "./thread-state.js";

/** How often a thread with a live run of another device looks whether somebody asks for its end, in ms. */
const LOOK_MS = 1_000;

export interface ThreadSyncContext extends EntriesContext, SenderContext {
  readonly space: Space;
  /** All entries up to now were read, and the connection is there. */
  readonly isCurrent: () => boolean;
  /** From now on it has something that is not saved. */
  readonly unsaved: (thread: ThreadSync) => void;
  readonly save: (thread: ThreadSync) => Promise<void>;
  /** Something may be unsent: it rings when there is a connection again. */
  readonly unsent: (thread: ThreadSync) => void;
  /** Its runs are about to leave this device: it is written down that they are to be read anew. */
  readonly letGo: (key: string, threadId: string, last: number) => Promise<void>;
  /** Its runs have left this device. */
  readonly left: (thread: ThreadSync) => void;
  /** Why nothing can be sent, as it seems; undefined: something was sent. */
  readonly failed: (why: string | undefined) => void;
  /** What the space says is not understood here: nothing more is read or sent, of no thread. */
  readonly refuse: (message: string) => void;
  readonly signal: AbortSignal;
}

/**
 * One thread between the log and the space: writes down what other devices add, and sends what this one has. One step
 * after the other; whatever may have changed something rings.
 */
export class ThreadSync {
  readonly entries: ThreadEntries;
  private readonly bell = new Bell();
  private readonly sender: Sender;
  private readonly ended: AbortController;
  private working: Promise<void> | undefined;
  /** The seq of the first entry that is being saved: see ThreadEntries.unsavedFrom. */
  private savingFrom: number | undefined;
  /** When it was saved last, by the clock of the host. */
  private savedAt = -Infinity;
  private leaving: Promise<boolean> | undefined;
  /** A request of this device: it rings when that is not fresh any more. */
  private timed: SpaceLock | undefined;

  constructor(
    private readonly context: ThreadSyncContext,
    record: ThreadRecord,
  ) {
    this.ended = abortWith(context.signal);
    const { signal } = this.ended;
    this.entries = new ThreadEntries(context, record, {
      ring: () => this.ring(),
      wake: () => this.wake(),
      look: () => this.sender.look(),
      unsaved: () => context.unsaved(this),
      save: () => context.save(this),
      signal,
    });
    this.sender = new Sender(context, {
      whole: this.entries.read.whole,
      record: () => this.entries.record,
      isOpen: () => this.isInStep() && !signal.aborted,
      isTaken: () => this.arrivals.live !== undefined,
      isListed: () => !this.arrivals.changeList,
      isEndHere: () => !this.arrivals.moveEnd,
      skip: (runIndex, leftOut) => (this.entries.record = passedOver(this.entries.record, runIndex, leftOut)),
      add: async (message) => (await this.add(message)) && this.entries.restoring === undefined,
    });
    if (record.unread === true) this.entries.readAnew(record.state.last);
  }

  get record(): ThreadRecord {
    return this.entries.record;
  }

  get key(): string {
    return this.entries.record.key;
  }

  /** Undefined where it does not matter: as long as the record says that nothing was read, all of it is read again. */
  get firstUnsaved(): number | undefined {
    return this.entries.record.unread === true ? undefined : (this.savingFrom ?? this.entries.unsavedFrom);
  }

  /** The same once what is being saved is there. */
  get firstUnsavedThen(): number | undefined {
    return this.entries.record.unread === true ? undefined : this.entries.unsavedFrom;
  }

  /** It is read from its first entry on: what is known of it is older, until that is done. */
  get isReadAnew(): boolean {
    return this.entries.restoring !== undefined;
  }

  /** What others have added up to now is in the log, but for runs that are live. */
  get isHere(): boolean {
    return this.leaving === undefined && (this.entries.runsAre === "begun" || this.entries.runsAre === "here");
  }

  /** What others have added, on its way into the log. */
  get arrivals(): Arrivals {
    return this.entries.arrivals;
  }

  /** Why it cannot be written down now; undefined: it can, as far as is known. */
  failure: unknown;

  /** This device has begun something in it that others do not have to its end. */
  get isOurs(): boolean {
    const { lock, open } = this.entries.record.state;
    const { self } = this.context;
    return [lock, ...Object.values(open)].some((one) => one?.device.id === self.id);
  }

  /** Another device holds it, and is online. */
  get heldBy(): DeviceName | undefined {
    const { lock } = this.entries.record.state;
    const { self, devices } = this.context;
    if (lock === undefined || lock.device.id === self.id || devices.isAway(lock.device.id)) return undefined;
    return lock.device;
  }

  /**
   * An entry of the thread, in order. Those that were read before are passed over, and one that stands elsewhere than where
   * its writer added it says nothing.
   *
   * @param message undefined for one that says nothing
   * @returns false where the thread has left this device
   */
  async take(entry: SpaceEntry, message: SpaceMessage | undefined): Promise<boolean> {
    if ((await this.leaving) === true) return false;
    await this.entries.take(entry, message);
    return true;
  }

  /** Something may have changed. */
  ring(): void {
    this.sender.look();
    this.wake();
  }

  private wake(): void {
    this.bell.ring();
    if (this.ended.signal.aborted) return;
    if (this.working !== undefined) return;
    const working = this.work().finally(() => {
      if (this.working === working) this.working = undefined;
    });
    this.working = working;
  }

  /**
   * Its runs leave this device, if the space has all that there is and nobody needs them here.
   *
   * @param isFree nobody has opened it
   * @returns false where they stay
   */
  async leave(isFree: () => boolean): Promise<boolean> {
    // One that cannot be written down or sent now must not keep others here (L19).
    await inTime(this.settled(), LOOK_MS, this.context.parts.clock).catch(() => undefined);
    if (this.working !== undefined || !this.isInSpace || !isFree()) return false;
    const leaving = this.leaveLog(isFree).catch((error: unknown) => {
      this.context.parts.logger.warn(`${this.entries.record.threadId}: stays on this device: ${messageOf(error)}`);
      return false;
    });
    this.leaving = leaving;
    this.working = leaving.then(() => (this.working = undefined));
    const hasLeft = await leaving;
    if (!hasLeft) {
      this.leaving = undefined;
      this.ring();
    }
    // Somebody may have opened it meanwhile.
    this.context.wrote();
    return hasLeft;
  }

  /** As far as is known without a look at the log: nothing of it is here alone, and nothing goes on in it. */
  get isInSpace(): boolean {
    const { state, unread, deleting } = this.entries.record;
    // A server that has ended in the middle of a run never comes back as the same device.
    const isQuiet = [state.lock, ...Object.values(state.open)].every(
      (one) => one === undefined || this.context.devices.isAway(one.device.id),
    );
    const isKnown = this.entries.added.areRead && this.entries.runsAre === "here" && this.arrivals.areWrittenDown;
    const isSaved = (this.savingFrom ?? this.entries.unsavedFrom ?? unread ?? this.entries.restoring) === undefined;
    return (
      isQuiet && isKnown && isSaved && deleting === undefined && this.context.isCurrent() && !this.ended.signal.aborted
    );
  }

  private async leaveLog(isFree: () => boolean): Promise<boolean> {
    const { parts, history } = this.context;
    const { threadId, key, state } = this.entries.record;
    const [{ head, next }, row] = await Promise.all([this.sender.next(), parts.store.thread(threadId)]);
    // What waits for an answer, or to be gone on with, may need more than others have.
    const isOver =
      head?.pending === undefined &&
      row?.lastStatus !== undefined &&
      row.lastStatus !== "broken" &&
      state.active !== null;
    if (head === undefined || row === undefined || row.pinned || next !== undefined || !isOver) return false;
    const mayLeave = (): boolean => isFree() && this.isInSpace && this.entries.record.state.last === state.last;
    if (!mayLeave()) return false;
    // A host that starts later reads it anew, also where it does not leave after all.
    await this.context.letGo(key, threadId, state.last);
    const hasLeft = await parts.store.leave?.(head, { threadId, ...briefOf(row) }, mayLeave);
    if (hasLeft !== true) {
      await this.context.save(this);
      return false;
    }
    this.context.left(this);
    this.ended.abort();
    history.forget(threadId);
    parts.channel.post({ type: "changed", threadId });
    return true;
  }

  /** Resolves when what is known now is written down or sent, as far as that can be. */
  async settled(): Promise<void> {
    this.savedAt = -Infinity;
    this.ring();
    await this.working;
  }

  /** Nothing is done any more. @param why the live runs that are written down here break off; undefined: another host goes on */
  async end(why?: string): Promise<void> {
    this.ended.abort();
    await this.working?.catch(() => undefined);
    await this.arrivals.giveUp(why);
  }

  /**
   * Adds an entry.
   *
   * @returns false where others have added something that was not read yet
   */
  async add(message: SpaceMessage): Promise<boolean> {
    return (await this.place(message)) !== undefined;
  }

  /** Like {@link add}. @returns the seq of the entry */
  async place(message: SpaceMessage): Promise<number | undefined> {
    const { space, parts } = this.context;
    const { last } = this.entries.record.state;
    const isWhole = message.type === "whole";
    if (isWhole && message.upTo !== last) return undefined;
    if (message.type === "active") this.entries.telling = message.runId;
    const body = encodeMessage(message);
    const seq = await space.add(this.key, body, { last, id: parts.makeId(), ...(isWhole && { isWhole }) });
    if (seq === undefined) return undefined;
    this.context.failed(undefined);
    // Nothing came in between. It may have been read already, or is read again by what this would wait for.
    if (this.entries.record.state.last === last && this.entries.restoring === undefined && !this.ended.signal.aborted) {
      this.entries.added.add(seq, body);
      await this.entries.takeNext({ is: "entry", thread: this.key, seq, body }, message);
    }
    return seq;
  }

  private async work(): Promise<void> {
    const { entries } = this;
    const { parts } = this.context;
    const { signal } = this.ended;
    while (!signal.aborted) {
      const seen = this.bell.count;
      let isSavedLater = false;
      try {
        const { restoring } = entries;
        if (restoring !== undefined) {
          const upTo = await restoreThread(this.context, entries, restoring, signal);
          if (signal.aborted) return;
          if (restoring.upTo !== upTo && entries.record.state.last < restoring.upTo) continue;
          entries.restoring = undefined;
          restoring.restored();
          this.context.wrote();
        }
        await entries.arrivals.writeDown();
        await entries.lookAtEnd();
        await entries.come();
        await this.sender.send();
        this.lookLater();
        await this.reconcile();
        // While something is to be restored, what is saved must still say so.
        const isUnsaved = entries.unsavedFrom !== undefined || entries.record.unread === true;
        // What a live run adds is saved now and then: a host that starts later reads it again.
        isSavedLater = isUnsaved && this.sender.isStreaming && parts.clock.elapsed() - this.savedAt < LOOK_MS;
        if (isUnsaved && !isSavedLater && this.arrivals.areWrittenDown && entries.restoring === undefined) {
          this.savedAt = parts.clock.elapsed();
          await this.saveRead();
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof NotUnderstood) {
          this.ended.abort();
          return this.context.refuse(error.message);
        }
        this.sender.look();
        if (error instanceof SpaceOffline && !this.context.isCurrent()) this.context.unsent(this);
        else if (error instanceof SpaceOffline) {
          // It failed with a connection after which there is another one: nothing rings for that.
          await parts.clock.after(LOOK_MS, signal);
          this.bell.ring();
        } else {
          const why = messageOf(error);
          this.failure = error;
          // Whoever reads on in the log is told what fails.
          this.arrivals.live?.feed.lose();
          entries.warn(`not in step: ${why}`);
          this.context.failed(why);
          this.context.wrote();
          await parts.clock.after(LOOK_MS, signal);
          this.failure = undefined;
          this.bell.ring();
        }
      }
      if (signal.aborted) return;
      if (this.bell.count !== seen) continue;
      if (!this.arrivals.areBehind && !isSavedLater) {
        // At once: a ring that comes now starts anew.
        this.working = undefined;
        return;
      }
      await ringOrSilence(this.bell, seen, parts.clock, LOOK_MS, signal);
    }
  }

  /** All that was read is in the log: so says the record from now on. */
  private async saveRead(): Promise<void> {
    const { unread, ...read } = this.entries.record;
    this.entries.record = read;
    this.savingFrom = this.entries.unsavedFrom;
    this.entries.unsavedFrom = undefined;
    try {
      await this.context.save(this);
    } catch (error) {
      // It is not: the place in the log must not go past it.
      this.entries.unsavedFrom = this.savingFrom ?? this.entries.unsavedFrom;
      this.entries.record = { ...this.entries.record, ...(unread && { unread }) };
      throw error;
    } finally {
      this.savingFrom = undefined;
    }
  }

  /** What this device has asked servers for, and nobody waits for any more, is taken back once it is not fresh. */
  private lookLater(): void {
    const { self, parts } = this.context;
    const { lock } = this.entries.record.state;
    const now = parts.clock.now();
    if (lock === this.timed || lock?.asks === undefined || lock.device.id !== self.id) return;
    if (!isFresh(lock.asks, now)) return;
    this.timed = lock;
    void parts.clock.after(freshFor(lock.asks, now), this.ended.signal).then(() => {
      // The time of day may have been set meanwhile.
      this.timed = undefined;
      this.ring();
    });
  }

  /** This device is in step; else it rings when it is. */
  private isInStep(): boolean {
    const isCurrent = this.context.isCurrent();
    if (!isCurrent) this.context.unsent(this);
    return isCurrent;
  }

  /** The end of the active path, and the title, are those that all devices come to. */
  private async reconcile(): Promise<void> {
    if (!this.isInStep() || !this.arrivals.areWrittenDown || this.sender.isStreaming) return;
    await reconcile(this.context, this.entries.record);
  }
}
