import { abortWith } from "../platform/abort.js";
import { Bell } from "../platform/bell.js";
import { messageOf } from "../run/errors.js";
import { unlessDamaged } from "../runner/history/run-log.js";
import type { FedRun } from "../run/run-feed.js";
import type { DeviceName } from "../storage/devices.js";
import type { RunRow } from "../storage/run-store.js";
import { AddedEntries } from "./added-entries.js";
import { Arrivals, type ArrivalsContext } from "./arrivals.js";
import { freshFor, isFresh } from "./asked-run.js";
import type { StopCall } from "./devices.js";
import type { IncomingRun, Written } from "./incoming.js";
import { encodeMessage, messageIn, NotUnderstood, type SpaceMessage, type WholeMessage } from "./messages.js";
import { afterDeletion, deleteHere, reconcile } from "./log-changes.js";
import { briefOf } from "./outgoing.js";
import { ReadOfThread } from "./read-of-thread.js";
import { changedHere, firstUnknown, grown, passedOver, recordAfter } from "./record-changes.js";
import { Restoring, type RestoringReason } from "./restoring.js";
import { namedRun, runName } from "./run-name.js";
import { Sender, type SenderContext } from "./sender.js";
import { SpaceOffline, type Space, type SpaceEntry } from "./space.js";
import type { ThreadRecord } from "./sync-database.js";
import { fold, newChunks, NO_ENTRIES, openRun, type SpaceLock } from "./thread-state.js";
import { comesTo, isAheadOf } from "./whole-entries.js";
import { wholeThread } from "./whole-thread.js";

/** How often a thread with a live run of another device looks whether somebody asks for its end, in ms. */
const LOOK_MS = 1_000;

export interface ThreadSyncContext extends ArrivalsContext, SenderContext {
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
  /** Ends a run of this device. */
  readonly stop: (call: StopCall) => void;
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
  private readonly bell = new Bell();
  private readonly arrivals: Arrivals;
  private readonly sender: Sender;
  private readonly ended: AbortController;
  private working: Promise<void> | undefined;
  /** Everything that the space has of it is to be read, or read again. */
  private restoring: Restoring | undefined;
  /** The entries that are being taken: before the thread is read again, they are. Never rejects. */
  private taking: Promise<unknown> = Promise.resolve();
  private readonly added = new AddedEntries();
  private readonly read = new ReadOfThread();
  /** The seq of the first entry that is not in the log and the record yet. */
  private unsavedFrom: number | undefined;
  /** The same of what is being saved. */
  private savingFrom: number | undefined;
  /** The seq of the last entry of a run by which another device has added something. */
  private lastOfOthers = 0;
  /** When it was saved last, by the clock of the host. */
  private savedAt = -Infinity;
  private leaving: Promise<boolean> | undefined;
  /** What was logged last of it. */
  private said: string | undefined;
  /** A request of this device: it rings when that is not fresh any more. */
  private timed: SpaceLock | undefined;
  /**
   * Whether its runs are in the log, as far as others have added any: to be read; read; of the first one there is nothing
   * yet that could be written down; written down.
   */
  private runsAre: "unread" | "read" | "begun" | "here" = "here";

  constructor(
    private readonly context: ThreadSyncContext,
    private its: ThreadRecord,
  ) {
    this.ended = abortWith(context.signal);
    this.arrivals = new Arrivals(
      context,
      () => this.its,
      () => this.forgetThread(),
    );
    this.sender = new Sender(context, {
      whole: this.read.whole,
      record: () => this.its,
      isOpen: () => this.isInStep() && !this.ended.signal.aborted,
      isTaken: () => this.live !== undefined,
      isListed: () => !this.arrivals.changeList,
      skip: (runIndex, leftOut) => (this.its = passedOver(this.its, runIndex, leftOut)),
      add: async (message) => (await this.add(message)) && this.restoring === undefined,
    });
    if (its.unread === true) this.readAnew(its.state.last);
  }

  get record(): ThreadRecord {
    return this.its;
  }

  /** What a host that starts later is to know. */
  get toSave(): ThreadRecord {
    const { restoring, its } = this;
    return restoring !== undefined && its.unread === true ? { ...restoring.before, unread: true } : its;
  }

  get key(): string {
    return this.its.key;
  }

  /** Undefined where it does not matter: as long as the record says that nothing was read, all of it is read again. */
  get firstUnsaved(): number | undefined {
    return this.its.unread === true ? undefined : (this.savingFrom ?? this.unsavedFrom);
  }

  /** The same once what is being saved is there. */
  get firstUnsavedThen(): number | undefined {
    return this.its.unread === true ? undefined : this.unsavedFrom;
  }

  /** Resolves when the thread was read again; undefined where it is not. */
  get restored(): Promise<void> | undefined {
    return this.restoring?.done;
  }

  /** What others have added up to now is in the log, but for runs that are live. */
  get isHere(): boolean {
    return this.leaving === undefined && (this.runsAre === "begun" || this.runsAre === "here");
  }

  /** Everything that was read of the thread is in the log. */
  get isWrittenDown(): boolean {
    return this.arrivals.areWrittenDown;
  }

  /** Why it cannot be written down now; undefined: it can, as far as is known. */
  failure: unknown;

  /** The run of another device that is written down while it goes on. */
  get live(): FedRun | undefined {
    return this.arrivals.live;
  }

  /** Something is still to be written down that waits for nothing but the thread. */
  get isBehind(): boolean {
    return this.arrivals.areBehind;
  }

  /** This device has begun something in it that others do not have to its end. */
  get isOurs(): boolean {
    const { lock, open } = this.its.state;
    const { self } = this.context;
    return [lock, ...Object.values(open)].some((one) => one?.device.id === self.id);
  }

  /** Another device holds it, and is online. */
  get heldBy(): DeviceName | undefined {
    const { lock } = this.its.state;
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
    const { restoring } = this;
    if (restoring !== undefined) {
      // It comes with all others; what comes of other threads must not wait for that.
      restoring.upTo = Math.max(restoring.upTo, entry.seq);
      this.unsaved(entry.seq);
      return true;
    }
    await this.takeNext(entry, message);
    return true;
  }

  /** One after the other. */
  private async takeNext(...of: Parameters<ThreadSync["takeNow"]>): Promise<void> {
    const taken = this.taking.then(() => this.takeNow(...of));
    this.taking = taken.catch(() => undefined);
    await taken;
  }

  private async takeNow(entry: SpaceEntry, message: SpaceMessage | undefined): Promise<void> {
    if (message === undefined) this.pass(entry);
    else if (message.type === "whole") await this.foldWhole(entry, message);
    else await this.fold(entry, message);
  }

  /**
   * An entry, as the space has it now. What this device has added and knows already must be there as it is, or be in a whole
   * one that comes to the same: else all others know less.
   */
  compare({ seq, body }: SpaceEntry, message: SpaceMessage | undefined): void {
    const { state } = this.its;
    const isWhole = message?.type === "whole" && !this.added.areRead;
    // Where it stands for more than is known here, all is read.
    if (isWhole && (message.upTo > state.last || comesTo(message, state))) this.added.forget(message.upTo);
    const isThere = this.added.read(seq, body);
    if (isThere || this.restoring !== undefined) return;
    this.context.parts.logger.warn(`${this.its.threadId}: the space lacks what was added to it; it is sent again`);
    this.restoreLater("lost");
  }

  /**
   * Where something is missing, all of its entries are read, from the first one. Resolves when a host that starts later does
   * so, too.
   *
   * @param last the seq of its last entry, at least
   */
  async readUpTo(last: number): Promise<void> {
    const { restoring } = this;
    if (restoring !== undefined) restoring.upTo = Math.max(last, restoring.upTo);
    else if (this.its.state.last < last) this.readAnew(last);
    if (this.its.unread === true) await this.context.save(this);
  }

  private readAnew(upTo: number): void {
    this.its = { ...this.its, unread: true };
    this.runsAre = "unread";
    this.restoreLater("unread", upTo);
  }

  private pass({ seq, body }: SpaceEntry, whole?: WholeMessage): void {
    const { state } = this.its;
    if (seq <= state.last) return;
    this.unsaved(seq);
    this.its = { ...this.its, state: { ...state, last: seq }, since: grown(this.its.since, body.length, whole) };
    this.ring();
  }

  /** An entry that stands for those before it: where some of them were not read, the thread is read anew. */
  private async foldWhole(entry: SpaceEntry, whole: WholeMessage): Promise<void> {
    const { thread, seq, after } = entry;
    const { last } = this.its.state;
    if (seq <= last) return;
    const isAhead = isAheadOf(last, whole, after);
    if (isAhead && last > 0) return this.readUpTo(seq);
    if (isAhead) {
      this.unsaved(seq);
      for (const its of whole.entries) {
        await this.fold({ is: "entry", thread, seq: its.seq, body: NOTHING }, its.message);
      }
    }
    this.pass(entry, isAhead || whole.upTo === last ? whole : undefined);
    const { state, since } = this.its;
    // What it stands for may be there until somebody has removed it.
    if (state.deleted === true && !isAhead && whole.upTo === last && since !== undefined)
      this.its = { ...this.its, since: { ...since, remains: seq } };
  }

  private unsaved(seq: number): void {
    if (this.unsavedFrom === undefined) this.context.unsaved(this);
    this.unsavedFrom ??= seq;
  }

  private async fold(entry: SpaceEntry, message: SpaceMessage): Promise<void> {
    const { seq, body, after } = entry;
    const { type } = message;
    const isOfRun = type === "run" || type === "events" || type === "end" || type === "abandon";
    const name = type === "run" ? runName(message) : isOfRun ? message.runId : "";
    const isWaited = isOfRun && this.arrivals.takes(name);
    const isFromHere = message.device.id === this.context.self.id;
    const { store } = this.context.parts;
    if (seq <= this.its.state.last) return;
    // All that is read is read first: the record must not be ahead of what is to be written down.
    const isOwnMore = type === "events" && isFromHere && !this.arrivals.knows(name);
    const isRowNeeded = isOfRun && !isOwnMore && (isFromHere || !isWaited || type === "abandon");
    const row = isRowNeeded ? await this.readable(store.runNamed(message.threadId, namedRun(name))) : undefined;
    const isDeletion = type === "deleted" && message.runs !== undefined;
    const unsent = isDeletion ? await this.readable(firstUnknown(store, message.threadId, message.runs)) : 0;
    const before = this.its;
    if (seq <= before.state.last) return;
    const { last } = before.state;
    if (after !== undefined && after !== last) {
      if (after < last || after >= seq) return this.pass(entry);
      // What it follows was not read.
      if (this.restoring === undefined) return this.readUpTo(seq);
      this.context.parts.logger.warn(`${message.threadId}: the space lacks what was added to it before entry ${seq}`);
      return this.pass(entry);
    }
    // What this device said of a run of its own is in its log, unless that was lost.
    const isOwn = isFromHere && (!isOfRun || (type === "run" ? row !== undefined : !this.arrivals.knows(name)));
    this.unsaved(seq);
    const folded = fold(before.state, seq, message);
    const { state, outcome } = folded;
    this.its = recordAfter(before, message, folded, { bytes: body.length, unsent: unsent ?? 0 });
    this.read.take(message, before.state, outcome);
    if (state.lastRun !== before.state.lastRun) this.addedTo(before, isFromHere);
    if (type === "run") {
      // Another server took this one for dead, and goes on with its run.
      const { attempt, prev } = message;
      const isLeft = attempt !== undefined && openRun(state, prev ?? "", this.context.self) !== undefined;
      if (!isFromHere && isLeft) this.context.stop({ threadId: message.threadId, runId: attempt.of });
      // Another device sends the run from now on.
      if (outcome !== "nothing") this.arrivals.giveWay(name);
    }
    if (isOwn) this.takeOwn(message, before, outcome !== "nothing", row);
    switch (outcome) {
      case "active-run":
      case "run-beside":
        if (type === "run" && !isOwn) this.arrivals.expect(message, outcome === "run-beside", before.state.active);
        break;
      case "events":
        if (type !== "events" || isOwn) break;
        if (this.isLacking(name, row)) return this.readAnew(seq);
        this.incoming(name, row)?.add(newChunks(message.chunks, before.state.open[name]?.nextSeq ?? 0));
        break;
      case "end":
        if (type !== "end" || isOwn) break;
        if (this.isLacking(name, row)) return this.readAnew(seq);
        this.incoming(name, row)?.finish(message);
        this.arrivals.isWhole(name);
        break;
      case "result":
        // Where this device has given it, and another one was first, that one counts.
        if (type === "result") this.arrivals.add({ is: "result", message });
        break;
      case "abandon":
        if (type !== "abandon" || isOwn) break;
        this.sendAgain(name, row);
        this.incoming(name, row)?.abandon();
        this.arrivals.isWhole(name);
        break;
      case "thread":
        if (type === "thread")
          this.arrivals.add({ is: "thread", message, before: before.listed, untold: this.restoring?.untold });
        break;
      case "active":
        if (type === "active") this.arrivals.add({ is: "active", message });
        break;
      case "deleted":
        // Of what was live nothing more comes, unless its device sends it again.
        for (const live of Object.keys(before.state.open)) this.arrivals.cutOff(live, isFromHere);
        if (type === "deleted") this.arrivals.add({ is: "deleted", message });
        break;
      case "nothing":
    }
    // More of another device's run changes nothing of what is to be sent.
    if (type !== "events" || isOwn) this.sender.look();
    this.wake();
  }

  /** Something was added to a run. What this device had on its way when people deleted the thread here, they knew. */
  private addedTo({ deleting, state: { lastRun: before } }: ThreadRecord, isFromHere: boolean): void {
    const { lastRun } = this.its.state;
    if (!isFromHere) this.lastOfOthers = lastRun;
    else if (deleting === before) this.its = { ...this.its, deleting: lastRun };
  }

  /** What is damaged counts as missing: no other thread waits for it (L19). */
  private async readable<T>(read: Promise<T>): Promise<T | undefined> {
    try {
      return await read;
    } catch (error) {
      unlessDamaged(error);
      this.warn(`cannot be read: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** The same, once. */
  private warn(what: string): void {
    if (what !== this.said) this.context.parts.logger.warn(`${this.its.threadId}: ${what}`);
    this.said = what;
  }

  /** Whoever was to send the run does not have it: where everything is sent, this device sends what it has of it. */
  private sendAgain(name: string, row: RunRow | undefined): void {
    const { revives, sent } = this.its;
    if (row === undefined || revives === undefined) return;
    this.its = { ...this.its, sent: Math.min(sent, row.runIndex), revives: revives.filter((one) => one !== name) };
  }

  private takeOwn(message: SpaceMessage, before: ThreadRecord, counts: boolean, row: RunRow | undefined): void {
    const { type } = message;
    const { activating: _activating, deleting: _deleting, ...rest } = this.its;
    if (type === "run" && counts) this.read.ownBegins(message);
    if (type === "end" && counts) {
      this.read.ownEnds(message);
      if (row?.runIndex === this.its.sent) this.its = { ...this.its, sent: row.runIndex + 1 };
    }
    // Where somebody else was first, what they did counts.
    if (type === "active" || type === "deleted") this.its = rest;
    // What others have of a run that is gone here comes back, and so does a thread that others had added to.
    const isGone = type === "abandon" && counts && row === undefined;
    const isToGo = before.deleting !== undefined;
    const isKept = isGone && !isToGo && (before.state.open[message.runId]?.nextSeq ?? 0) > 0;
    const isRefused = type === "deleted" && !counts && before.state.deleted !== true;
    if (this.restoring !== undefined || (!isKept && !isRefused)) return;
    this.restoreLater("deleted");
  }

  /** Between two steps of the work: entries that come meanwhile wait for it. */
  private restoreLater(why: RestoringReason, upTo = this.its.state.last): void {
    this.restoring = new Restoring(why, upTo, this.asInLog(this.its), this.ended.signal);
    this.ring();
  }

  /** What was read of the list, and is not written down, nobody has changed here. */
  private asInLog(record: ThreadRecord): ThreadRecord {
    const { listed: _listed, ...rest } = record;
    const listed = this.arrivals.listedBefore ?? this.its.listed;
    return { ...rest, ...(listed !== undefined && { listed }) };
  }

  /** From its first entry on: nothing is known of it. @returns the record for that */
  private async beginRestoring(restoring: Restoring): Promise<ThreadRecord> {
    if (!restoring.isBegun) restoring.before = this.asInLog(restoring.before);
    restoring.isBegun = true;
    const { why, told } = restoring;
    const { parts } = this.context;
    const { key, threadId, unread, revives, listed } = restoring.before;
    const isLost = why === "lost";
    // Whoever changes each entry must not keep this device busy.
    if (isLost) await parts.clock.after(LOOK_MS, this.ended.signal);
    const reads = [parts.store.head(threadId), parts.store.thread(threadId).catch(unlessDamaged)] as const;
    const [head, row] = await Promise.all(reads);
    await this.taking;
    restoring.upTo = Math.max(restoring.upTo, this.its.state.last);
    await this.arrivals.giveUp(told);
    this.added.clear();
    this.read.clear();
    restoring.untold = changedHere(row, listed);
    return {
      key,
      threadId,
      state: NO_ENTRIES,
      sent: head?.first ?? 0,
      first: head?.first ?? 0,
      ...(unread === true && { unread }),
      ...(isLost ? { revives: [] } : why === "unread" && revives && { revives }),
    };
  }

  /** Everything that is in the space comes (back). @returns the seq up to which it was to be read */
  private async restore(restoring: Restoring): Promise<number> {
    const { parts } = this.context;
    const { signal } = this.ended;
    let { from } = restoring;
    // What fails begins anew.
    restoring.from = undefined;
    if (from === undefined) this.its = from = await this.beginRestoring(restoring);
    const { why, told } = restoring;
    const isLost = why === "lost";
    let upTo: number;
    // Of a run that goes on, more comes meanwhile: that is read after what was read.
    do {
      ({ upTo } = restoring);
      const place = { key: this.key, upTo, after: this.its.state.last };
      for await (const entry of wholeThread(this.context, place, signal)) {
        const message = messageIn(entry, from.threadId);
        if (this.isJoinedAhead(entry, message)) {
          await this.arrivals.giveUp(told);
          this.read.clear();
          this.its = from;
        }
        await this.takeNow(entry, message);
      }
    } while (restoring.upTo > upTo && this.its.state.last < restoring.upTo && !signal.aborted);
    restoring.from = from;
    if (this.runsAre === "unread") this.runsAre = "read";
    // What people have done here is told once more.
    const { lastRun, deleted, active } = this.its.state;
    const { activating, deleting, state: before } = restoring.before;
    if (!isLost) {
      if (deleting !== undefined && deleting === lastRun) {
        // None of what others have of it comes back.
        await this.arrivals.giveUp(told);
        this.note({ deleting });
      }
      if (activating !== undefined && activating.knew === active) this.note({ activating });
    }
    if (!isLost) return upTo;
    const runId = activating?.runId ?? before.active;
    const { threadId } = from;
    // It may have been deleted since it began to be read.
    if ((await parts.store.head(threadId))?.deleted === true) {
      if (lastRun > 0 && deleted !== true) this.note({ deleting: lastRun });
    } else if (runId !== null && runId !== active) this.note({ activating: { runId, knew: active } });
    return upTo;
  }

  /** It stands for entries that were not read, behind some that were: they were joined meanwhile. */
  private isJoinedAhead({ after }: SpaceEntry, message: SpaceMessage | undefined): boolean {
    const { last } = this.its.state;
    return message?.type === "whole" && last > 0 && isAheadOf(last, message, after);
  }

  /** What this device has to tell of the thread, beside what the log says. */
  note(change: Partial<Pick<ThreadRecord, "activating" | "deleting" | "first">>): void {
    this.its = { ...this.its, ...change };
    // A host that starts later must know it, too.
    if (this.unsavedFrom === undefined) void this.context.save(this).catch(() => undefined);
    this.ring();
  }

  /** A host of this device says that it has deleted it. */
  async deletedHere(): Promise<void> {
    const { restoring } = this;
    // What is being read again is not what people knew.
    const known = restoring?.before ?? this.its;
    const { lastRun, deleted } = known.state;
    if (lastRun === 0 || deleted === true) return;
    const after = await afterDeletion(this.context, known);
    if (after === "kept") return;
    if (restoring !== undefined && restoring === this.restoring) {
      // Others are told when all is read, if they have added nothing.
      restoring.before = { ...restoring.before, deleting: lastRun };
      if (this.its.unread === true) await this.context.save(this);
      return;
    }
    const first = await this.firstInLog();
    // What other devices have added unseen stays, with all that was in the thread.
    if (after === "deleted" && !this.arrivals.haveUnseen) {
      // What of this device was on its way, it knew.
      const { lastRun: now } = this.its.state;
      return this.note({ deleting: this.lastOfOthers > lastRun ? lastRun : now, first });
    }
    this.its = { ...this.its, first };
    if (this.restoring === undefined) this.restoreLater("deleted");
  }

  private async firstInLog(): Promise<number> {
    const head = await this.context.parts.store.head(this.its.threadId);
    return head?.first ?? 0;
  }

  /** Nothing is left of what its last whole entry stands for. */
  removed(): void {
    const { since } = this.its;
    if (since?.remains === undefined) return;
    const { remains: _remains, ...rest } = since;
    this.its = { ...this.its, since: rest };
    if (this.unsavedFrom === undefined) void this.context.save(this).catch(() => undefined);
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
    await this.settled();
    if (this.working !== undefined || !this.isInSpace || !isFree()) return false;
    const leaving = this.leaveLog(isFree).catch((error: unknown) => {
      this.context.parts.logger.warn(`${this.its.threadId}: stays on this device: ${messageOf(error)}`);
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
    const { state, unread, activating, deleting } = this.its;
    // A server that has ended in the middle of a run never comes back as the same device.
    const isQuiet = [state.lock, ...Object.values(state.open)].every(
      (one) => one === undefined || this.context.devices.isAway(one.device.id),
    );
    const isKnown = this.added.areRead && this.runsAre === "here" && this.isWrittenDown;
    const isSaved = (this.savingFrom ?? this.unsavedFrom ?? unread ?? this.restoring) === undefined;
    const isTold = activating === undefined && deleting === undefined;
    return isQuiet && isKnown && isSaved && isTold && this.context.isCurrent() && !this.ended.signal.aborted;
  }

  private async leaveLog(isFree: () => boolean): Promise<boolean> {
    const { parts, history } = this.context;
    const { threadId, key, state } = this.its;
    const [{ head, next }, row] = await Promise.all([this.sender.next(), parts.store.thread(threadId)]);
    // What waits for an answer, or to be gone on with, may need more than others have.
    const isOver =
      head?.pending === undefined &&
      row?.lastStatus !== undefined &&
      row.lastStatus !== "broken" &&
      state.active !== null;
    if (head === undefined || row === undefined || row.pinned || next !== undefined || !isOver) return false;
    const mayLeave = (): boolean => isFree() && this.isInSpace && this.its.state.last === state.last;
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
    const { last } = this.its.state;
    const isWhole = message.type === "whole";
    if (isWhole && message.upTo !== last) return undefined;
    const body = encodeMessage(message);
    const seq = await space.add(this.key, body, { last, id: parts.makeId(), ...(isWhole && { isWhole }) });
    if (seq === undefined) return undefined;
    this.context.failed(undefined);
    // Nothing came in between. It may have been read already, or is read again by what this would wait for.
    if (this.its.state.last === last && this.restoring === undefined && !this.ended.signal.aborted) {
      this.added.add(seq, body);
      await this.takeNext({ is: "entry", thread: this.key, seq, body }, message);
    }
    return seq;
  }

  private async work(): Promise<void> {
    const { parts } = this.context;
    const { signal } = this.ended;
    while (!signal.aborted) {
      const seen = this.bell.count;
      let isSavedLater = false;
      try {
        const { restoring } = this;
        if (restoring !== undefined) {
          const upTo = await this.restore(restoring);
          if (signal.aborted) return;
          if (restoring.upTo !== upTo && this.its.state.last < restoring.upTo) continue;
          this.restoring = undefined;
          restoring.restored();
          this.context.wrote();
        }
        await this.arrivals.writeDown();
        if ((this.runsAre === "read" || this.runsAre === "begun") && this.restoring === undefined) await this.come();
        await this.sender.send();
        this.lookLater();
        await this.reconcile();
        // While something is to be restored, what is saved must still say so.
        const isUnsaved = this.unsavedFrom !== undefined || this.its.unread === true;
        // What a live run adds is saved now and then: a host that starts later reads it again.
        isSavedLater = isUnsaved && this.sender.isStreaming && parts.clock.elapsed() - this.savedAt < LOOK_MS;
        if (isUnsaved && !isSavedLater && this.isWrittenDown && this.restoring === undefined) {
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
          this.live?.feed.lose();
          this.warn(`not in step: ${why}`);
          this.context.failed(why);
          this.context.wrote();
          await parts.clock.after(LOOK_MS, signal);
          this.failure = undefined;
          this.bell.ring();
        }
      }
      if (signal.aborted) return;
      if (this.bell.count !== seen) continue;
      if (!this.isBehind && !isSavedLater) {
        // At once: a ring that comes now starts anew.
        this.working = undefined;
        return;
      }
      const looked = abortWith(signal);
      await Promise.race([this.bell.wait(seen, looked.signal), parts.clock.after(LOOK_MS, looked.signal)]);
      looked.abort();
    }
  }

  /** All that was read is in the log: so says the record from now on. */
  private async saveRead(): Promise<void> {
    const { unread, ...read } = this.its;
    this.its = read;
    this.savingFrom = this.unsavedFrom;
    this.unsavedFrom = undefined;
    try {
      await this.context.save(this);
    } catch (error) {
      // It is not: the place in the log must not go past it.
      this.unsavedFrom = this.savingFrom ?? this.unsavedFrom;
      this.its = { ...this.its, ...(unread && { unread }) };
      throw error;
    } finally {
      this.savingFrom = undefined;
    }
  }

  /** What this device has asked servers for, and nobody waits for any more, is taken back once it is not fresh. */
  private lookLater(): void {
    const { self, parts } = this.context;
    const { lock } = this.its.state;
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

  /** The run of an entry; where it began before what was read now, as the log has it. */
  private incoming(name: string, row: RunRow | undefined): IncomingRun | undefined {
    return this.arrivals.run(name, row, this.its.state.active !== name);
  }

  /** More has come of a run that nobody has written down, since its device was away before anything of it had come. */
  private isLacking(name: string, row: RunRow | undefined): boolean {
    const isHere = this.restoring === undefined && this.its.deleting === undefined;
    return isHere && this.arrivals.isUnknown(name, row);
  }

  private async come(): Promise<void> {
    const { parts, wrote } = this.context;
    const { threadId, state, listed } = this.its;
    const head = await parts.store.head(threadId);
    const isEmpty = head === undefined || head.deleted === true;
    this.runsAre = isEmpty && this.arrivals.haveUnseen ? "begun" : "here";
    // Until something of it can be shown it is in the list as it was.
    if (this.runsAre === "begun") return wrote();
    // The run that gave it its title may be gone, as if it had never begun: see `reconcile`.
    const { title: _title, ...flags } = listed ?? {};
    const title = state.title ?? (state.active === null ? undefined : listed?.title);
    await parts.store.arrived?.(threadId, { ...flags, ...(title !== undefined && { title }) });
    parts.channel.post({ type: "changed", threadId });
    wrote();
  }

  /** A run of another device that is still to be written down. */
  expects(name: string): boolean {
    return this.arrivals.expects(name);
  }

  /** Another device deleted the thread. Where this one has added to it meanwhile, it stays, and is sent again. */
  private async forgetThread(): Promise<Written> {
    const deleted = await deleteHere(this.context, this.its, this.read);
    if (deleted === "kept") {
      this.read.whole.clear();
      this.its = { ...this.its, sent: 0, revives: [] };
      this.sender.look();
    }
    if (deleted === "deleted") {
      const first = await this.firstInLog();
      this.its = { ...this.its, first };
    }
    return deleted === "blocked" ? "blocked" : "done";
  }

  /** This device is in step; else it rings when it is. */
  private isInStep(): boolean {
    const isCurrent = this.context.isCurrent();
    if (!isCurrent) this.context.unsent(this);
    return isCurrent;
  }

  /** The end of the active path, and the title, are those that all devices come to. */
  private async reconcile(): Promise<void> {
    const { activating } = this.its;
    if (!this.isInStep() || !this.isWrittenDown || activating !== undefined || this.sender.isStreaming) return;
    await reconcile(this.context, this.its);
  }
}

/** What stands in an entry that stands in another one. */
const NOTHING = new Uint8Array();
