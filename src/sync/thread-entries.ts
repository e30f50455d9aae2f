import { messageOf } from "../run/errors.js";
import { unlessDamaged } from "../runner/history/run-log.js";
import type { RunRow } from "../storage/run-store.js";
import { AddedEntries } from "./added-entries.js";
import { Arrivals, type ArrivalsContext } from "./arrivals.js";
import type { StopCall } from "./devices.js";
import type { IncomingRun, Written } from "./incoming.js";
import type { SpaceMessage, WholeMessage } from "./messages.js";
import { afterDeletion, deleteHere } from "./log-changes.js";
import { ReadOfThread } from "./read-of-thread.js";
import { firstUnknown, grown, recordAfter } from "./record-changes.js";
import { Restoring, type RestoringReason } from "./restoring.js";
import { namedRun, runName } from "./run-name.js";
import type { SpaceEntry } from "./space.js";
import type { ThreadRecord } from "./sync-database.js";
import { fold, newChunks, openRun } from "./thread-state.js";
import { comesTo, isAheadOf } from "./compaction.js";

export interface EntriesContext extends ArrivalsContext {
  /** Ends a run of this device. */
  readonly stop: (call: StopCall) => void;
}

/** What a thread does about its entries. */
export interface EntriesHooks {
  /** Something may have changed in the log, too. */
  readonly ring: () => void;
  /** Something is to be written down, or read. */
  readonly wake: () => void;
  /** Something may be sent that was not to be sent before. */
  readonly look: () => void;
  /** From now on it has something that is not saved. */
  readonly unsaved: () => void;
  readonly save: () => Promise<void>;
  /** Aborts where nothing is done any more. */
  readonly signal: AbortSignal;
}

/**
 * The entries of one thread, as they are read: each is folded in order, and what others have added goes on its way into the
 * log. Where something is missing, all are to be read again.
 */
export class ThreadEntries {
  readonly arrivals: Arrivals;
  readonly added = new AddedEntries();
  readonly read = new ReadOfThread();
  /** Everything that the space has of it is to be read, or read again. */
  restoring: Restoring | undefined;
  /** The entries that are being taken: before the thread is read again, they are. Never rejects. */
  taking: Promise<unknown> = Promise.resolve();
  /** The seq of the first entry that is not in the log and the record yet. */
  unsavedFrom: number | undefined;
  /**
   * Whether its runs are in the log, as far as others have added any: to be read; read; of the first one there is nothing
   * yet that could be written down; written down.
   */
  runsAre: "unread" | "read" | "begun" | "here" = "here";
  /** The run of which others were told last that people here have taken up its branch. */
  telling: string | undefined;
  /** The seq of the last entry of a run by which another device has added something. */
  private lastOfOthers = 0;
  /** What was logged last of it. */
  private said: string | undefined;

  constructor(
    private readonly context: EntriesContext,
    public record: ThreadRecord,
    private readonly hooks: EntriesHooks,
  ) {
    this.arrivals = new Arrivals(
      context,
      () => this.record,
      () => this.forgetThread(),
      (lacks) => (this.record = { ...this.record, lacks }),
    );
  }

  /** What a host that starts later is to know. */
  get toSave(): ThreadRecord {
    const { restoring, record: its } = this;
    return restoring !== undefined && its.unread === true ? { ...restoring.before, unread: true } : its;
  }

  /** Resolves when the thread was read again; undefined where it is not. */
  get restored(): Promise<void> | undefined {
    return this.restoring?.done;
  }

  /** An entry of the thread, in order. */
  async take(entry: SpaceEntry, message: SpaceMessage | undefined): Promise<void> {
    const { restoring } = this;
    if (restoring === undefined) return this.takeNext(entry, message);
    // It comes with all others; what comes of other threads must not wait for that.
    restoring.upTo = Math.max(restoring.upTo, entry.seq);
    this.unsaved(entry.seq);
  }

  /** One after the other. */
  async takeNext(...of: Parameters<ThreadEntries["takeNow"]>): Promise<void> {
    const taken = this.taking.then(() => this.takeNow(...of));
    this.taking = taken.catch(() => undefined);
    await taken;
  }

  async takeNow(entry: SpaceEntry, message: SpaceMessage | undefined): Promise<void> {
    if (message === undefined) this.pass(entry);
    else if (message.type === "whole") await this.foldWhole(entry, message);
    else await this.fold(entry, message);
  }

  /**
   * An entry, as the space has it now. What this device has added and knows already must be there as it is, or be in a whole
   * one that comes to the same: else all others know less.
   */
  compare({ seq, body }: SpaceEntry, message: SpaceMessage | undefined): void {
    const { state } = this.record;
    const isWhole = message?.type === "whole" && !this.added.areRead;
    // Where it stands for more than is known here, all is read.
    if (isWhole && (message.upTo > state.last || comesTo(message, state))) this.added.forget(message.upTo);
    const isThere = this.added.read(seq, body);
    if (isThere || this.restoring !== undefined) return;
    this.context.parts.logger.warn(`${this.record.threadId}: the space lacks what was added to it; it is sent again`);
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
    else if (this.record.state.last < last) return this.readAgain(last);
    if (this.record.unread === true) await this.hooks.save();
  }

  private async readAgain(upTo: number): Promise<void> {
    this.readAnew(upTo);
    await this.hooks.save();
  }

  readAnew(upTo: number): void {
    this.record = { ...this.record, unread: true };
    this.runsAre = "unread";
    this.restoreLater("unread", upTo);
  }

  private pass({ seq, body }: SpaceEntry, whole?: WholeMessage): void {
    const { state } = this.record;
    if (seq <= state.last) return;
    this.unsaved(seq);
    this.record = {
      ...this.record,
      state: { ...state, last: seq },
      since: grown(this.record.since, body.length, whole),
    };
    this.hooks.ring();
  }

  /** An entry that stands for those before it: where some of them were not read, the thread is read anew. */
  private async foldWhole(entry: SpaceEntry, whole: WholeMessage): Promise<void> {
    const { thread, seq, after } = entry;
    const { last } = this.record.state;
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
    const { state, since } = this.record;
    // What it stands for may be there until somebody has removed it.
    if (state.deleted === true && !isAhead && whole.upTo === last && since !== undefined)
      this.record = { ...this.record, since: { ...since, remains: seq } };
  }

  private unsaved(seq: number): void {
    if (this.unsavedFrom === undefined) this.hooks.unsaved();
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
    if (seq <= this.record.state.last) return;
    // All that is read is read first: the record must not be ahead of what is to be written down.
    const isOwnMore = type === "events" && isFromHere && !this.arrivals.knows(name);
    const isRowNeeded = isOfRun && !isOwnMore && (isFromHere || !isWaited || type === "abandon");
    const row = isRowNeeded ? await this.readable(store.runNamed(message.threadId, namedRun(name))) : undefined;
    const isDeletion = type === "deleted" && message.runs !== undefined;
    const unsent = isDeletion ? await this.readable(firstUnknown(store, message.threadId, message.runs)) : 0;
    const before = this.record;
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
    const isSaid = type === "run" ? isOwn : type === "active" && isFromHere && message.runId === this.telling;
    this.record = recordAfter(before, message, folded, { bytes: body.length, unsent: unsent ?? 0, isSaid });
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
    // Of a switch to another branch nothing is written down: when all that was added is, the log follows, see `reconcile`.
    const said = outcome === "nothing" ? undefined : message;
    switch (said?.type) {
      case "run":
        if (!isOwn) this.arrivals.expect(said, outcome === "run-beside", before.state.active, row);
        break;
      case "events":
        if (isOwn) break;
        if (this.isLacking(name, row)) return this.readAgain(seq);
        this.incoming(name, row)?.add(newChunks(said.chunks, before.state.open[name]?.nextSeq ?? 0));
        break;
      case "end":
        if (isOwn) break;
        if (this.isLacking(name, row)) return this.readAgain(seq);
        this.incoming(name, row)?.finish(said);
        this.arrivals.isWhole(name);
        break;
      case "result":
        // Where this device has given it, and another one was first, that one counts.
        this.arrivals.add({ is: "result", message: said });
        break;
      case "abandon":
        if (isOwn) break;
        this.sendAgain(name, row);
        this.incoming(name, row)?.abandon();
        this.arrivals.isWhole(name);
        break;
      case "thread":
        // What this device has said of the list its log has had: people may have changed it again since.
        if (!isOwn || this.restoring !== undefined)
          this.arrivals.add({ is: "thread", message: said, before: before.listed, untold: this.restoring?.untold });
        break;
      case "deleted":
        // Of what was live nothing more comes, unless its device sends it again.
        for (const live of Object.keys(before.state.open)) this.arrivals.cutOff(live, isFromHere);
        this.arrivals.add({ is: "deleted", message: said });
    }
    // More of another device's run changes nothing of what is to be sent.
    if (type !== "events" || isOwn) this.hooks.look();
    this.hooks.wake();
  }

  /** Something was added to a run. What this device had on its way when people deleted the thread here, they knew. */
  private addedTo({ deleting, state: { lastRun: before } }: ThreadRecord, isFromHere: boolean): void {
    const { lastRun } = this.record.state;
    if (!isFromHere) this.lastOfOthers = lastRun;
    else if (deleting === before) this.record = { ...this.record, deleting: lastRun };
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
  warn(what: string): void {
    if (what !== this.said) this.context.parts.logger.warn(`${this.record.threadId}: ${what}`);
    this.said = what;
  }

  /** Whoever was to send the run does not have it: where everything is sent, this device sends what it has of it. */
  private sendAgain(name: string, row: RunRow | undefined): void {
    const { revives, sent } = this.record;
    if (row === undefined || revives === undefined) return;
    this.record = {
      ...this.record,
      sent: Math.min(sent, row.runIndex),
      revives: revives.filter((one) => one !== name),
    };
  }

  private takeOwn(message: SpaceMessage, before: ThreadRecord, counts: boolean, row: RunRow | undefined): void {
    const { type } = message;
    const { deleting: _deleting, ...rest } = this.record;
    if (type === "run" && counts) this.read.ownBegins(message);
    if (type === "end" && counts) {
      this.read.ownEnds(message);
      if (row?.runIndex === this.record.sent) this.record = { ...this.record, sent: row.runIndex + 1 };
    }
    // Where somebody else was first, what they did counts.
    if (type === "deleted") this.record = rest;
    // What others have of a run that is gone here comes back, and so does a thread that others had added to.
    const isGone = type === "abandon" && counts && row === undefined;
    const isToGo = before.deleting !== undefined;
    const isKept = isGone && !isToGo && (before.state.open[message.runId]?.nextSeq ?? 0) > 0;
    const isRefused = type === "deleted" && !counts && before.state.deleted !== true;
    if (this.restoring !== undefined || (!isKept && !isRefused)) return;
    this.restoreLater("deleted");
  }

  /** Between two steps of the work: entries that come meanwhile wait for it. */
  private restoreLater(why: RestoringReason, upTo = this.record.state.last): void {
    this.restoring = new Restoring(why, upTo, this.asInLog(this.record), this.hooks.signal);
    this.hooks.ring();
  }

  /** What was read of the list, and is not written down, nobody has changed here. */
  asInLog(record: ThreadRecord): ThreadRecord {
    const { listed: _listed, ...rest } = record;
    const listed = this.arrivals.listedBefore ?? this.record.listed;
    return { ...rest, ...(listed !== undefined && { listed }) };
  }

  /** What this device has to tell of the thread, beside what the log says. */
  note(change: Partial<Pick<ThreadRecord, "deleting" | "first">>): void {
    this.record = { ...this.record, ...change };
    this.saveNow();
    this.hooks.ring();
  }

  /** Nothing is left of what its last whole entry stands for. */
  removed(): void {
    const { since } = this.record;
    if (since?.remains === undefined) return;
    const { remains: _remains, ...rest } = since;
    this.record = { ...this.record, since: rest };
    this.saveNow();
  }

  /** A host that starts later must know it, too. */
  private saveNow(): void {
    if (this.unsavedFrom === undefined) void this.hooks.save().catch(() => undefined);
  }

  /** A host of this device says that it has deleted it. */
  async deletedHere(): Promise<void> {
    const { restoring } = this;
    // What is being read again is not what people knew.
    const known = restoring?.before ?? this.record;
    const { lastRun, deleted } = known.state;
    if (lastRun === 0 || deleted === true) return;
    const after = await afterDeletion(this.context, known);
    if (after === "kept") return;
    if (restoring !== undefined && restoring === this.restoring) {
      // Others are told when all is read, if they have added nothing.
      restoring.before = { ...restoring.before, deleting: lastRun };
      if (this.record.unread === true) await this.hooks.save();
      return;
    }
    const first = await this.firstInLog();
    // What other devices have added unseen stays, with all that was in the thread.
    if (after === "deleted" && !this.arrivals.haveUnseen) {
      // What of this device was on its way, it knew.
      const { lastRun: now } = this.record.state;
      return this.note({ deleting: this.lastOfOthers > lastRun ? lastRun : now, first });
    }
    this.record = { ...this.record, first };
    if (this.restoring === undefined) this.restoreLater("deleted");
  }

  private async firstInLog(): Promise<number> {
    const head = await this.context.parts.store.head(this.record.threadId);
    return head?.first ?? 0;
  }

  /** The run of an entry; where it began before what was read now, as the log has it. */
  private incoming(name: string, row: RunRow | undefined): IncomingRun | undefined {
    return this.arrivals.run(name, row, this.record.state.active !== name);
  }

  /** More has come of a run that nobody has written down, since its device was away before anything of it had come. */
  private isLacking(name: string, row: RunRow | undefined): boolean {
    const isHere = this.restoring === undefined && this.record.deleting === undefined;
    return isHere && this.arrivals.isUnknown(name, row);
  }

  /** Looks whether the log has the end of the active path that others have made. */
  async lookAtEnd(): Promise<void> {
    const { threadId, state, activeIs } = this.record;
    const { active } = state;
    if (activeIs !== undefined || active === null || this.arrivals.moveEnd) return;
    const { store } = this.context.parts;
    const [head, run] = await Promise.all([
      store.head(threadId),
      store.runNamed(threadId, namedRun(active)).catch(unlessDamaged),
    ]);
    const isSeen = run !== undefined && head?.deleted !== true && head?.activeRunIndex === run.runIndex;
    // More may have been read meanwhile.
    if (isSeen && this.record.state === state) this.endIs("seen");
  }

  /** See {@link ThreadRecord.activeIs}. */
  endIs(activeIs: ThreadRecord["activeIs"]): void {
    const { activeIs: _before, ...record } = this.record;
    this.record = { ...record, ...(activeIs !== undefined && { activeIs }) };
  }

  /** Its runs are in the log: so says the list, once there is something to show. */
  async come(): Promise<void> {
    if ((this.runsAre !== "read" && this.runsAre !== "begun") || this.restoring !== undefined) return;
    const { parts, wrote } = this.context;
    const { threadId, state, listed } = this.record;
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

  /** Another device deleted the thread. Where this one has added to it meanwhile, it stays, and is sent again. */
  private async forgetThread(): Promise<Written> {
    const deleted = await deleteHere(this.context, this.record, this.read);
    if (deleted === "kept") {
      this.read.whole.clear();
      this.record = { ...this.record, sent: 0, revives: [] };
      this.hooks.look();
    }
    if (deleted === "deleted") {
      const first = await this.firstInLog();
      this.record = { ...this.record, first };
    }
    return deleted === "blocked" ? "blocked" : "done";
  }
}

/** What stands in an entry that stands in another one. */
const NOTHING = new Uint8Array();
