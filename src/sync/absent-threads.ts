import { ringOrSilence, type Bell } from "../platform/bell.js";
import { RunnerError } from "../run/errors.js";
import type { RunnerParts } from "../runner/parts.js";
import type { AbsentThread } from "../storage/devices.js";
import type { SpaceMessage } from "./messages.js";
import { SpaceOffline, type Space, type SpaceEntry, type SpaceState } from "./space.js";
import type { SyncRecords } from "./memory-sync-database.js";
import type { ThreadRecord } from "./sync-database.js";
import { KEYS_THREAD } from "./thread-key.js";
import type { ThreadSync } from "./thread-sync.js";
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
  readonly database: Pick<SyncRecords, "thread" | "put" | "hasAbsent" | "setAbsent">;
  /** `opened`: only threads that somebody opens come to this device. */
  readonly keep: "all" | "opened";
  readonly threadOf: (threadId: string) => Promise<ThreadSync | undefined>;
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
  /** By key, the seq of the last entry that was passed over because its thread is not here. */
  private readonly lasts = new Map<string, number>();
  private readonly since: number;

  constructor(private readonly of: AbsentThreadsParts) {
    this.since = of.parts.clock.elapsed();
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
    this.has = await this.of.database.hasAbsent();
    this.of.moved.ring();
  }

  /** The database was deleted with all that it listed, though nothing else of it is known. */
  async isLost(): Promise<boolean> {
    if (this.has !== true) return false;
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
   */
  async list(upTo: number, understand: Understand, signal: AbortSignal): Promise<void> {
    await this.mayHave();
    let said: Said[] = [];
    let last = 0;
    for await (const entry of this.of.space.lasts(signal)) {
      last = Math.max(last, entry.seq);
      const key = entry.thread;
      const its = await understand(entry);
      if (key === KEYS_THREAD) continue;
      const message = its ?? (await this.firstOf(key, understand, signal));
      if (message === undefined) await this.passOver(entry);
      else said.push({ key, message });
      if (said.length < PAGE) continue;
      await this.put(said);
      said = [];
    }
    await this.put(said);
    // A server that is behind the one that knows the last entry.
    if (last < upTo) throw new SpaceOffline("The servers do not have the last entries yet");
    this.of.listChanged();
  }

  /**
   * An entry of a thread that no host of this device has asked for since this one began.
   *
   * @returns false where its thread is here, or is to come: it is written down
   */
  async take({ thread: key, seq }: SpaceEntry, message: SpaceMessage): Promise<boolean> {
    const { database, keep, parts } = this.of;
    const { threadId } = message;
    if (!this.isAble || this.asked.has(threadId) || (this.has !== true && keep === "all")) return false;
    const known = await database.thread(key);
    if (known === undefined) {
      const head = await parts.store.head(threadId);
      if (keep === "all" || (head !== undefined && head.deleted !== true)) return false;
      await this.mayHave();
      await database.put([this.recordOf(key, threadId)]);
    } else if (known.unread !== true) return false;
    this.lasts.set(key, seq);
    await this.show([message]);
    return true;
  }

  /** The thread is listed, and is still to come. */
  async isAbsent(threadId: string): Promise<boolean> {
    return this.has !== false && (await this.of.parts.store.thread(threadId))?.absent === true;
  }

  /** Resolves when the thread is here, if the space has it. Errors: RunnerError `offline` where it cannot come now */
  async fetch(threadId: string): Promise<void> {
    const { moved, parts, closed, threadOf, isCurrent } = this.of;
    const { clock, store, channel } = parts;
    if (!this.isAble) return;
    this.asked.add(threadId);
    await this.listed(threadId);
    const since = clock.elapsed();
    for (let looksAt = since; !closed.aborted;) {
      const seen = moved.count;
      // Whatever comes of any thread rings.
      if (clock.elapsed() >= looksAt) {
        if ((await store.thread(threadId))?.absent !== true) return;
        looksAt = clock.elapsed() + LOOK_MS;
      }
      // The host that keeps the database in step reads it.
      if (this.has === undefined) channel.post({ type: "changed", threadId });
      else if ((await threadOf(threadId))?.isHere === true) return;
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

  /** Lets all come, those first that were changed last. */
  fetchAll(): void {
    if (this.has !== true || this.of.keep === "opened" || this.isFetching) return;
    this.isFetching = true;
    this.fetchEach()
      .catch(() => undefined)
      .finally(() => (this.isFetching = false));
  }

  /** The space has lost them, or the log. */
  async forget(): Promise<void> {
    if (this.has !== true) return;
    for (const threadId of await this.ids()) await this.of.parts.store.arrived?.(threadId);
    this.has = false;
    this.lasts.clear();
    this.count(undefined);
    this.of.listChanged();
  }

  private async fetchEach(): Promise<void> {
    const { closed, isCurrent, database } = this.of;
    const ids = await this.ids();
    this.count(ids.length);
    const next = ids.values();
    const one = async (): Promise<void> => {
      for (const threadId of next) {
        if (closed.aborted || !isCurrent()) return;
        await this.fetch(threadId);
        this.count((this.left ?? 1) - 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    // Some may have been listed meanwhile.
    if (closed.aborted || !isCurrent() || (await this.ids()).length > 0) return;
    this.has = false;
    await database.setAbsent(false);
    this.count(undefined);
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
    await this.of.database.setAbsent(true);
    this.has = true;
  }

  private recordOf(key: string, threadId: string): ThreadRecord {
    const revives = this.of.revives() ? { revives: [] } : {};
    return { key, threadId, state: NO_ENTRIES, sent: 0, unread: true, ...revives };
  }

  /** Writes down that they are in the space, and lists them. */
  private async put(said: readonly Said[]): Promise<void> {
    const { database, threadOf } = this.of;
    await database.put(said.map(({ key, message }) => this.recordOf(key, message.threadId)));
    await this.show(said.map(({ message }) => message));
    for (const { message } of said) {
      const { threadId } = message;
      // How it is listed, only the rest of it says.
      if (!saysHowListed(message) || this.asked.has(threadId)) void threadOf(threadId).catch(() => undefined);
    }
  }

  private async show(messages: readonly SpaceMessage[]): Promise<void> {
    const { store, channel } = this.of.parts;
    const rows = messages.flatMap((message): AbsentThread[] =>
      "brief" in message && message.brief !== undefined ? [{ ...message.brief, threadId: message.threadId }] : [],
    );
    const gone = messages.filter(isDeletion);
    if (rows.length > 0) await store.listAbsent?.(rows);
    for (const { threadId } of gone) await store.arrived?.(threadId);
    const changed = [...rows, ...gone];
    if (changed.length <= TOLD_SINGLY) for (const { threadId } of changed) channel.post({ type: "changed", threadId });
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

const saysHowListed = (message: SpaceMessage): boolean =>
  ("brief" in message && message.brief !== undefined) || isDeletion(message);
