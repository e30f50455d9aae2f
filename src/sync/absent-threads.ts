import { ringOrSilence } from "../platform/bell.js";
import { RunnerError } from "../run/errors.js";
import { SpaceList } from "./space-list.js";
import type { SyncHost } from "./sync-host.js";

/** How many threads are read at once in the background. */
const AT_ONCE = 4;
/** How many threads come between two reports of how many are left. */
const TOLD_EVERY = 20;
/** How long a reader waits for a connection, or for another host to read the thread, in ms. */
const WAIT_MS = 8_000;
/** How long after its start a host lets readers of unknown threads wait for the list, in ms. */
const LIST_MS = 2_000;
/** How often what nothing rings for is looked at, in ms. */
const LOOK_MS = 250;

/**
 * Threads that are in the list before their runs have come: on a device that is new in the space, and on one that keeps only
 * what somebody opens. A thread comes when somebody asks for it, else in the background. It is read from its first entry, so a
 * device that ends in the middle begins again with that thread, and with no other.
 */
export class AbsentThreads {
  readonly list: SpaceList;
  private isFetching = false;
  private left: number | undefined;
  /** Threads that somebody has asked for: they come whenever they are found. */
  private readonly asked = new Set<string>();
  private readonly since: number;

  constructor(private readonly of: SyncHost) {
    this.since = of.parts.clock.elapsed();
    this.list = new SpaceList(of, (threadId) => this.asked.has(threadId));
  }

  /** How many threads come in the background; undefined: none, or nobody knows yet. */
  get toCome(): number | undefined {
    return this.left;
  }

  /** From now on this host keeps the database in step. */
  async open(): Promise<void> {
    await this.list.open();
    this.of.moved.ring();
  }

  /** The thread is still to come. */
  async isAbsent(threadId: string): Promise<boolean> {
    const { list, of } = this;
    return list.has !== false && of.openOf(threadId)?.isHere !== true && (await list.isMissing(threadId));
  }

  /** Resolves when the thread is here, if the space has it. Errors: RunnerError `offline` where it cannot come now */
  async fetch(threadId: string): Promise<void> {
    const { moved, parts, closed, threadOf, isCurrent } = this.of;
    const { list } = this;
    const { clock, channel } = parts;
    if (!list.isAble) return;
    this.asked.add(threadId);
    await this.listed(threadId);
    const since = clock.elapsed();
    for (let looksAt = since; !closed.aborted;) {
      const seen = moved.count;
      // Whatever comes of any thread rings.
      if (clock.elapsed() >= looksAt) {
        if (!(await list.isMissing(threadId))) return;
        looksAt = clock.elapsed() + LOOK_MS;
      }
      // The host that keeps the database in step reads it.
      if (list.has === undefined) channel.post({ type: "changed", threadId });
      else {
        // It opens when the keys of the space are known.
        const late = clock.after(LOOK_MS, closed).then(() => undefined);
        const thread = await Promise.race([threadOf(threadId), late]);
        if (thread?.isHere === true) return;
        if (thread?.failure !== undefined) throw thread.failure;
      }
      const isLate = !isCurrent() && clock.elapsed() - since > WAIT_MS;
      if (isLate || (list.has !== undefined && this.isOffline)) throw this.notHere(threadId);
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
    const { list } = this;
    if (list.has !== true || this.isFetching || !list.isDue) return;
    this.isFetching = true;
    list.isDue = false;
    this.fetchEach()
      .catch(() => (list.isDue = true))
      .finally(() => (this.isFetching = false));
  }

  /** Its runs have left this device: nobody waits for it. */
  hasLeft(threadId: string): void {
    this.asked.delete(threadId);
  }

  /** The space has lost them, or the log. */
  async forget(): Promise<void> {
    await this.list.forget();
    this.count(undefined);
  }

  private async fetchEach(): Promise<void> {
    const { list } = this;
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
        if (hasCome) list.unlisted.wasRead(threadId);
        this.count((this.left ?? 1) - 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    if (closed.aborted || !isCurrent()) return void (list.isDue = true);
    // Some may have been listed meanwhile.
    const isOver = list.unlisted.size === 0 && (await list.ids()).length === 0;
    await (isOver ? list.end() : list.unlisted.save());
    this.count(undefined);
  }

  private async toFetch(): Promise<readonly string[]> {
    const { keep = "all", openOf } = this.of;
    const { list } = this;
    const { unlisted } = list;
    const listed = keep === "all" ? await list.ids() : [];
    const isToCome = (threadId: string): boolean => unlisted.has(threadId) || openOf(threadId)?.isHere !== true;
    return [...new Set([...unlisted.ids("unlisted"), ...listed, ...unlisted.ids("gone")])].filter(isToCome);
  }

  private count(left: number | undefined): void {
    this.left = left;
    if (left === undefined || left < TOLD_EVERY || left % TOLD_EVERY === 0) this.of.counted();
  }

  private notHere(threadId: string): RunnerError {
    const state = this.of.state();
    const why = "message" in state && state.message !== undefined ? ` (${state.message})` : "";
    const message = `The thread has not come to this device yet, which is not connected to the others${why}: try again when it is`;
    return new RunnerError("offline", { threadId }, { message });
  }
}
