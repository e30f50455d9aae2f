import { ringOrSilence, type Bell } from "../platform/bell.js";
import { RunnerError } from "../run/errors.js";
import type { RunnerParts } from "../runner/parts.js";
import type { AbsentThread } from "../storage/devices.js";
import type { Brief, SpaceMessage } from "./messages.js";
import { SpaceOffline, type Space, type SpaceEntry, type SpaceState } from "./space.js";
import type { SyncRecords } from "./memory-sync-database.js";
import type { ThreadRecord } from "./sync-database.js";
import { KEYS_THREAD } from "./thread-key.js";
import type { ThreadSync } from "./thread-sync.js";
import { UnlistedThreads, type Listing } from "./unlisted-threads.js";
import { NO_ENTRIES } from "./thread-state.js";

/** Threads that are written down at a time, and rows that are read at a time. */
const PAGE = 500;
/** How many threads are read at once in the background. */
const AT_ONCE = 4;
/** More changes of the list than this are told as one. */
const TOLD_SINGLY = 100;
/** How many threads come between two reports of how many are left. */
const TOLD_EVERY = 20;
/** How long a reader waits for a connection, or for another host to read the thread, in ms. */
const WAIT_MS = 8_000;
/** How long after its start a host lets readers of unknown threads wait for the list, in ms. */
const LIST_MS = 2_000;
/** How often what nothing rings for is looked at, in ms. */
const LOOK_MS = 250;

export interface AbsentThreadsParts {
  readonly parts: Pick<RunnerParts, "store" | "channel" | "clock">;
  readonly space: Pick<Space, "lasts" | "entries">;
  readonly keyOf: (threadId: string) => Promise<string>;
  readonly database: Pick<SyncRecords, "thread" | "put" | "absent" | "setAbsent">;
  /** `opened`: only threads that somebody opens come to this device. */
  readonly keep: "all" | "opened";
  readonly threadOf: (threadId: string) => Promise<ThreadSync | undefined>;
  /** A thread that is read, or was. */
  readonly openOf: (threadId: string) => ThreadSync | undefined;
  readonly state: () => SpaceState;
  readonly isCurrent: () => boolean;
  /** All threads that the space has are listed. */
  readonly isListed: () => boolean;
  /** The space has begun anew: all that is here is sent. */
  readonly revives: () => boolean;
  /** The whole list is to be read again. */
  readonly listChanged: () => void;
  /** The count of threads that are still to come has changed. */
  readonly counted: () => void;
  /** Rings when an entry was read or written down, and when the connection has changed. */
  readonly moved: Bell;
  readonly closed: AbortSignal;
}

/** What an entry says; undefined: nothing that can be understood. */
type Understand = (entry: SpaceEntry) => Promise<SpaceMessage | undefined>;

/** The last entry of a thread. */
interface Said {
  readonly key: string;
  readonly seq: number;
  readonly message: SpaceMessage;
}

/**
 * Threads that are in the list before their runs have come: on a device that is new in the space, and on one that keeps only
 * what somebody opens. A thread comes when somebody asks for it, else in the background. It is read from its first entry, so a
 * device that ends in the middle begins again with that thread, and with no other.
 */
export class AbsentThreads {
  /** There may be some. Undefined: this host does not keep the database in step (yet). */
  private has: boolean | undefined;
  private isFetching = false;
  private left: number | undefined;
  /** Threads that somebody has asked for: they come whenever they are found. */
  private readonly asked = new Set<string>();
  /** They come whatever is kept. */
  private readonly unlisted: UnlistedThreads;
  /** Something is to come. */
  private isDue = false;
  /** By key, the seq of the last entry that was passed over because its thread is not here. */
  private readonly lasts = new Map<string, number>();
  private readonly since: number;

  constructor(private readonly of: AbsentThreadsParts) {
    this.since = of.parts.clock.elapsed();
    this.unlisted = new UnlistedThreads(of.database);
  }

  /** The store can list threads that are not here. */
  get isAble(): boolean {
    return this.of.parts.store.listAbsent !== undefined;
  }

  /** How many threads come in the background; undefined: none, or nobody knows yet. */
  get toCome(): number | undefined {
    return this.left;
  }

  /** From now on this host keeps the database in step. */
  async open(): Promise<void> {
    this.has = await this.unlisted.open();
    this.isDue = this.has;
    this.of.moved.ring();
  }

  /** The database was deleted with all that it listed, though nothing else of it is known. */
  async isLost(): Promise<boolean> {
    if (this.has !== true || this.unlisted.size > 0) return false;
    const kinds = [false, true].map((archived) => this.of.parts.store.threads({ limit: 1, archived }));
    return (await Promise.all(kinds)).every(({ length }) => length === 0);
  }

  /** That of the last entry that is known to be there; 0: none. */
  lastOf(key: string): number {
    return this.lasts.get(key) ?? 0;
  }

  /**
   * Lists all threads of the space. Errors: SpaceOffline, those of `understand`
   *
   * @param upTo the seq of the space's last entry
   * @returns by key, the seq of the thread's last entry
   */
  async list(upTo: number, understand: Understand, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const isRepeated = this.has === true;
    await this.mayHave();
    const lasts = new Map<string, number>();
    let said: Said[] = [];
    let last = 0;
    for await (const entry of this.of.space.lasts(signal)) {
      const { thread: key, seq } = entry;
      last = Math.max(last, seq);
      lasts.set(key, seq);
      const its = await understand(entry);
      if (key === KEYS_THREAD) continue;
      const message = its ?? (await this.firstOf(key, understand, signal));
      if (message === undefined) await this.passOver(entry);
      else said.push({ key, seq, message });
      if (said.length < PAGE) continue;
      await this.put(said, isRepeated);
      said = [];
    }
    await this.put(said, isRepeated);
    // A server that is behind the one that knows the last entry.
    if (last < upTo) throw new SpaceOffline("The servers do not have the last entries yet");
    this.isDue = true;
    this.of.listChanged();
    return lasts;
  }

  /**
   * An entry of a thread that no host of this device has asked for since this one began.
   *
   * @returns false where its thread is here, or is to come: it is written down
   */
  async take({ thread: key, seq }: SpaceEntry, message: SpaceMessage): Promise<boolean> {
    const { database, keep, parts } = this.of;
    const { threadId } = message;
    // Of a thread that begins, the run says how it is listed.
    const isOfClaim = message.type === "claim" || message.type === "release";
    if (!this.isAble || this.asked.has(threadId) || (this.has !== true && keep === "all")) return false;
    const known = await database.thread(key);
    if (known === undefined) {
      const head = await parts.store.head(threadId);
      if (keep === "all" || (head !== undefined && head.deleted !== true)) return false;
      await this.mayHave();
      await database.put([this.recordOf(key, threadId, seq)]);
    } else if (known.unread !== true) return false;
    this.lasts.set(key, seq);
    const isKept = !saysListing(message) && (isOfClaim || this.unlisted.has(threadId) || (await this.hasRow(threadId)));
    if (!isKept) await this.show([{ key, seq, message }]);
    return true;
  }

  /** The thread is still to come. */
  async isAbsent(threadId: string): Promise<boolean> {
    if (this.has === false || this.of.openOf(threadId)?.isHere === true) return false;
    return this.unlisted.has(threadId) || (await this.hasRow(threadId));
  }

  private async hasRow(threadId: string): Promise<boolean> {
    return (await this.of.parts.store.thread(threadId))?.absent === true;
  }

  /** Resolves when the thread is here, if the space has it. Errors: RunnerError `offline` where it cannot come now */
  async fetch(threadId: string): Promise<void> {
    const { moved, parts, closed, threadOf, isCurrent } = this.of;
    const { clock, channel } = parts;
    if (!this.isAble) return;
    this.asked.add(threadId);
    await this.listed(threadId);
    const since = clock.elapsed();
    for (let looksAt = since; !closed.aborted;) {
      const seen = moved.count;
      // Whatever comes of any thread rings.
      if (clock.elapsed() >= looksAt) {
        if (!this.unlisted.has(threadId) && !(await this.hasRow(threadId))) return;
        looksAt = clock.elapsed() + LOOK_MS;
      }
      // The host that keeps the database in step reads it.
      if (this.has === undefined) channel.post({ type: "changed", threadId });
      else {
        const thread = await threadOf(threadId);
        if (thread?.isHere === true) return;
        if (thread?.failure !== undefined) throw thread.failure;
      }
      const isLate = !isCurrent() && clock.elapsed() - since > WAIT_MS;
      if (isLate || (this.has !== undefined && this.isOffline)) throw this.notHere(threadId);
      await ringOrSilence(moved, seen, clock, LOOK_MS, closed);
    }
    throw this.notHere(threadId);
  }

  /** A host that has just begun may not have the list yet. */
  private async listed(threadId: string): Promise<void> {
    const { moved, parts, closed, isListed } = this.of;
    const { clock, store } = parts;
    while (!closed.aborted && !isListed() && !this.isOffline) {
      const seen = moved.count;
      const left = this.since + LIST_MS - clock.elapsed();
      if (left <= 0 || (await store.thread(threadId)) !== undefined) return;
      await ringOrSilence(moved, seen, clock, Math.min(left, LOOK_MS), closed);
    }
  }

  private get isOffline(): boolean {
    const { is } = this.of.state();
    return is === "offline" || is === "refused";
  }

  /** Lets come what is not listed yet, and, where all are kept, the others, those first that were changed last. */
  fetchAll(): void {
    if (this.has !== true || this.isFetching || !this.isDue) return;
    this.isFetching = true;
    this.isDue = false;
    this.fetchEach()
      .catch(() => (this.isDue = true))
      .finally(() => (this.isFetching = false));
  }

  /** The space has lost them, or the log. */
  async forget(): Promise<void> {
    if (this.has !== true) return;
    for (const threadId of await this.ids()) await this.of.parts.store.arrived?.(threadId);
    this.has = false;
    this.lasts.clear();
    this.unlisted.clear();
    this.count(undefined);
    this.of.listChanged();
  }

  private async fetchEach(): Promise<void> {
    const { closed, isCurrent } = this.of;
    const ids = await this.toFetch();
    if (ids.length > 0) this.count(ids.length);
    const next = ids.values();
    const one = async (): Promise<void> => {
      for (const threadId of next) {
        if (closed.aborted || !isCurrent()) return;
        // One that cannot be written down must not keep the others away (L19).
        const hasCome = await this.fetch(threadId).then(
          () => true,
          () => false,
        );
        if (hasCome) this.unlisted.wasRead(threadId);
        this.count((this.left ?? 1) - 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    if (closed.aborted || !isCurrent()) return void (this.isDue = true);
    // Some may have been listed meanwhile.
    const isOver = this.unlisted.size === 0 && (await this.ids()).length === 0;
    await (isOver ? this.unlisted.none() : this.unlisted.save());
    if (isOver) this.has = false;
    this.count(undefined);
  }

  private async toFetch(): Promise<readonly string[]> {
    const { keep, openOf } = this.of;
    const listed = keep === "all" ? await this.ids() : [];
    const isToCome = (threadId: string): boolean => this.unlisted.has(threadId) || openOf(threadId)?.isHere !== true;
    return [...new Set([...this.unlisted.missing, ...listed, ...this.unlisted.doubtful])].filter(isToCome);
  }

  private count(left: number | undefined): void {
    this.left = left;
    if (left === undefined || left < TOLD_EVERY || left % TOLD_EVERY === 0) this.of.counted();
  }

  private ids(): Promise<readonly string[]> {
    return this.of.parts.store.absent?.() ?? Promise.resolve([]);
  }

  private notHere(threadId: string): RunnerError {
    const state = this.of.state();
    const why = "message" in state && state.message !== undefined ? ` (${state.message})` : "";
    const message = `The thread has not come to this device yet, which is not connected to the others${why}: try again when it is`;
    return new RunnerError("offline", { threadId }, { message });
  }

  private async mayHave(): Promise<void> {
    if (this.has === true) return;
    await this.unlisted.save();
    this.has = true;
  }

  /** @param last the seq of the last entry that is known to be there */
  private recordOf(key: string, threadId: string, last: number): ThreadRecord {
    const revives = this.of.revives() ? { revives: [] } : {};
    return { key, threadId, state: { ...NO_ENTRIES, last }, sent: 0, unread: true, ...revives };
  }

  /** Writes down that they are in the space, and lists them, but for those that are read already. */
  private async put(said: readonly Said[], isRepeated: boolean): Promise<void> {
    const { database, threadOf } = this.of;
    const isNews = await Promise.all(said.map((one) => this.isNews(one, isRepeated)));
    const news = said.filter((_, at) => isNews[at]);
    await database.put(news.map(({ key, seq, message }) => this.recordOf(key, message.threadId, seq)));
    await this.show(news);
    for (const { message } of news) {
      if (this.asked.has(message.threadId)) void threadOf(message.threadId).catch(() => undefined);
    }
  }

  /** One that is read already is read on from where it is, or anew. */
  private async isNews({ key, seq, message }: Said, isRepeated: boolean): Promise<boolean> {
    const { database, openOf } = this.of;
    if (openOf(message.threadId) !== undefined) return false;
    const known = isRepeated ? await database.thread(key) : undefined;
    return known === undefined || known.unread === true || known.state.last < seq;
  }

  /** Lists them as their last entries say. */
  private async show(said: readonly Said[]): Promise<void> {
    const { parts, keep } = this.of;
    const { store, channel, clock } = parts;
    const now = clock.now();
    const rows = said.flatMap(({ message }) => (hasBrief(message) ? [rowOf(message, now)] : []));
    const gone = said.flatMap(({ message }) => (isDeletion(message) ? [message.threadId] : []));
    if (rows.length > 0) await store.listAbsent?.(rows);
    for (const threadId of gone) await store.arrived?.(threadId);
    const listings = said.map(({ key, message }) => {
      return { key, threadId: message.threadId, listing: listingOf(message, keep) };
    });
    if (await this.unlisted.set(listings)) this.isDue = true;
    const changed = [...rows.map(({ threadId }) => threadId), ...gone];
    if (changed.length <= TOLD_SINGLY) for (const threadId of changed) channel.post({ type: "changed", threadId });
  }

  /** The first thing that anybody said in the thread. */
  private async firstOf(key: string, understand: Understand, signal: AbortSignal): Promise<SpaceMessage | undefined> {
    for await (const entry of this.of.space.entries(key, signal)) {
      const message = await understand(entry);
      if (message !== undefined) return message;
    }
    return undefined;
  }

  /** What is added to the thread comes after this entry. */
  private passOver({ thread: key, seq }: SpaceEntry): Promise<void> {
    return this.of.database.put([{ key, threadId: "", state: { ...NO_ENTRIES, last: seq }, sent: 0 }]);
  }
}

/** The thread is gone. */
const isDeletion = (message: SpaceMessage): boolean => message.type === "deleted" && message.counts === true;

const hasBrief = (message: SpaceMessage): message is SpaceMessage & { readonly brief: Brief } =>
  "brief" in message && message.brief !== undefined;

const saysListing = (message: SpaceMessage): boolean => hasBrief(message) || isDeletion(message);

/**
 * A deletion may be a lie, or an old one that somebody added again: where all threads are kept, the thread is read, too.
 * Elsewhere it is not: whoever can add it could as well leave the thread out.
 */
function listingOf(message: SpaceMessage, keep: "all" | "opened"): Listing {
  if (isDeletion(message)) return keep === "all" ? "gone" : "listed";
  return hasBrief(message) ? "listed" : "unlisted";
}

/** A device's clock may be wrong: none was changed later than now. */
function rowOf({ threadId, brief }: SpaceMessage & { readonly brief: Brief }, now: number): AbsentThread {
  const { createdAt, updatedAt } = brief;
  return { ...brief, threadId, createdAt: Math.min(createdAt, now), updatedAt: Math.min(updatedAt, now) };
}
