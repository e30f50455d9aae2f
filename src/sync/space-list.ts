import { unlessDamaged } from "../runner/history/run-log.js";
import type { AbsentThread } from "../storage/devices.js";
import type { Brief, SpaceMessage } from "./messages.js";
import { SpaceOffline, type SpaceEntry } from "./space.js";
import type { ThreadRecord } from "./sync-database.js";
import type { SyncHost } from "./sync-host.js";
import { KEYS_THREAD } from "./thread-key.js";
import { NO_ENTRIES } from "./thread-state.js";
import { UnlistedThreads, type Listing } from "./unlisted-threads.js";

/** Threads that are written down at a time, and rows that are read at a time. */
const PAGE = 500;
/** More changes of the list than this are told as one. */
const TOLD_SINGLY = 100;

/** What an entry says; undefined: nothing that can be understood. */
type Understand = (entry: SpaceEntry) => Promise<SpaceMessage | undefined>;

/** The last entry of a thread. */
interface Said {
  readonly key: string;
  readonly seq: number;
  readonly message: SpaceMessage;
}

/**
 * The list of threads whose runs have not come to this device, as the last entry of each says: read at once on a device that
 * is new in the space, and changed by what is added to threads that are not here.
 */
export class SpaceList {
  /** There may be some. Undefined: this host does not keep the database in step (yet). */
  has: boolean | undefined;
  /** Something is to come that nobody has asked for. */
  isDue = false;
  readonly unlisted: UnlistedThreads;
  /** By key, the seq of the last entry that was passed over because its thread is not here. */
  private readonly lasts = new Map<string, number>();

  /** @param isAsked somebody waits for the thread: it comes as soon as it is found */
  constructor(
    private readonly of: SyncHost,
    private readonly isAsked: (threadId: string) => boolean,
  ) {
    this.unlisted = new UnlistedThreads(of.database);
  }

  /** The store can list threads that are not here. */
  get isAble(): boolean {
    return this.of.parts.store.listAbsent !== undefined;
  }

  /** From now on this host keeps the database in step. */
  async open(): Promise<void> {
    this.has = await this.unlisted.open();
    this.isDue = this.has;
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
   * Reads the last entries of all threads of the space. Errors: SpaceOffline, those of `understand`
   *
   * @param upTo the seq of the space's last entry
   * @returns by key, the seq of the thread's last entry
   */
  async read(upTo: number, understand: Understand, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const isRepeated = this.has === true;
    await this.mayHave();
    const lasts = new Map<string, number>();
    let said: Said[] = [];
    let last = 0;
    for await (const entry of this.of.space.lasts(signal)) {
      const { thread: key, seq, end = seq } = entry;
      last = Math.max(last, end);
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
  async take({ thread: key, seq, after }: SpaceEntry, message: SpaceMessage): Promise<boolean> {
    const { database, keep = "all", parts } = this.of;
    const { threadId } = message;
    // Of a thread that begins, the run says how it is listed.
    const isOfClaim = message.type === "claim" || message.type === "release";
    if (!this.isAble || this.isAsked(threadId) || (this.has !== true && keep === "all")) return false;
    const known = await database.thread(key);
    if (known === undefined) {
      const head = await parts.store.head(threadId);
      if (keep === "all" || (head !== undefined && head.deleted !== true)) return false;
      await this.mayHave();
      await database.put([this.recordOf(key, threadId, seq)]);
    } else if (known.unread !== true) return false;
    // Somebody has added it again: it was added behind an earlier entry.
    const last = Math.max(this.lastOf(key), known?.state.last ?? 0);
    const isOld = after !== undefined && after < last && last < seq;
    this.lasts.set(key, seq);
    if (isOld) return true;
    const isKept = !saysListing(message) && (isOfClaim || this.unlisted.has(threadId) || (await this.hasRow(threadId)));
    if (!isKept) await this.show([{ key, seq, message }]);
    return true;
  }

  /**
   * The runs of a thread are about to leave this device: it is read anew when somebody opens it.
   *
   * @param last the seq of its last entry
   */
  async letGo(key: string, threadId: string, last: number): Promise<void> {
    await this.mayHave();
    await this.of.database.put([this.recordOf(key, threadId, last)]);
    this.lasts.set(key, last);
  }

  /** It is listed, or would be: its runs have not come. */
  async isMissing(threadId: string): Promise<boolean> {
    return this.unlisted.has(threadId) || (await this.hasRow(threadId));
  }

  /** Ids of the threads that are listed, those first that were changed last. */
  ids(): Promise<readonly string[]> {
    return this.of.parts.store.absent?.() ?? Promise.resolve([]);
  }

  /** No thread is missing any more. */
  async end(): Promise<void> {
    this.has = false;
    this.lasts.clear();
    await this.unlisted.none();
  }

  /** The space has lost them, or the log. */
  async forget(): Promise<void> {
    if (this.has !== true) return;
    for (const threadId of await this.ids()) await this.of.parts.store.arrived?.(threadId);
    this.has = false;
    this.lasts.clear();
    this.unlisted.clear();
    this.of.listChanged();
  }

  /** It is listed, and its runs are not here. */
  async hasRow(threadId: string): Promise<boolean> {
    return (await this.of.parts.store.thread(threadId).catch(unlessDamaged))?.absent === true;
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
      if (this.isAsked(message.threadId)) void threadOf(message.threadId).catch(() => undefined);
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
    const { parts, keep = "all" } = this.of;
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
const isDeletion = (message: SpaceMessage): boolean => "counts" in message && message.counts === true;

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
