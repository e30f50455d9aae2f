import { Beats, type BeatOptions } from "../platform/beats.js";
import { systemClock } from "../platform/clock.js";
import { randomId, type MakeId } from "../platform/ids.js";
import type { HeldLock, Locks, ThreadLocks } from "../platform/locks.js";
import { Ticker } from "../platform/ticker.js";
import { indexedDBLeaseStore, isSameLease, type Lease, type LeaseStore } from "../storage/indexeddb/leases.js";
import { lookedAgain, mayTake, type Sighting } from "./lease-sighting.js";

export interface LeaseLocksOptions extends BeatOptions {
  /** Name of the log's database. */
  readonly dbName: string;
  /** How long opening the database of leases may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
  readonly makeId?: MakeId;
  /** Where the leases stand. Default: IndexedDB. */
  readonly store?: LeaseStore;
}

/** A lease that this context holds. */
interface Holding {
  readonly owner: string;
  readonly end: () => void;
}

/**
 * The locks of a host where there are no Web Locks (plain http): leases in a database for threads, {@link Beats} for
 * lives. A holder raises its leases about each second; one that stands unraised for several ticks of a contender may be
 * taken over. So a holder that slept can have lost its lease before it knows: the log's fence keeps it from writing.
 */
export function leaseLocks(options: LeaseLocksOptions): Locks & { close(): Promise<void> } {
  const beats: Beats = new Beats(
    options,
    (names) => leases.answer(names),
    () => void leases.look(),
  );
  const leases = new ThreadLeases(options.store ?? indexedDBLeaseStore(options), beats, options);
  return {
    hold: (name) => beats.hold(name),
    whenFree: (name, signal) => beats.whenFree(name, signal),
    tryHold: (name) => leases.tryHold(name),
    steal: (name) => leases.steal(name),
    async close() {
      await leases.close();
      beats.close();
    },
  };
}

/** A timer runs only while something is held or watched. */
class ThreadLeases implements ThreadLocks {
  private readonly held = new Map<string, Holding>();
  /** Leases of others that nobody has been seen to raise. */
  private readonly watched = new Map<string, Sighting>();
  private readonly ticker: Ticker;
  private readonly makeId: MakeId;
  private raising = false;
  private closed = false;

  constructor(
    private readonly store: LeaseStore,
    private readonly beats: Pick<Beats, "ask">,
    { clock = systemClock, makeId = randomId }: LeaseLocksOptions,
  ) {
    this.makeId = makeId;
    this.ticker = new Ticker(
      clock,
      () => !this.closed && this.held.size + this.watched.size > 0,
      (late) => this.tick(late),
    );
  }

  async tryHold(name: string): Promise<HeldLock | undefined> {
    const owner = this.makeId();
    const there = await this.store.take(name, owner, mayTake(this.watched.get(name)));
    if (there === undefined) return this.granted(name, owner);
    this.watch(name, there);
    return undefined;
  }

  async steal(name: string): Promise<HeldLock> {
    const owner = this.makeId();
    await this.store.replace(name, owner);
    return this.granted(name, owner);
  }

  /** Somebody asks whether the holders of these leases live: a throttled context hears it before its next tick. */
  answer(names: readonly string[]): void {
    if (names.some((name) => this.held.has(name))) void this.raise();
  }

  /** Watches every lease of others from now on: one of the hosts is quiet, and its leases may soon be asked for. */
  async look(): Promise<void> {
    for (const [name, lease] of await this.read()) this.watch(name, lease);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.ticker.adjust();
    await Promise.all([...this.held].map(([name, holding]) => this.letGo(name, holding)));
    await this.store.close();
  }

  private granted(name: string, owner: string): HeldLock {
    let end!: () => void;
    const gone = new Promise<void>((resolve) => (end = resolve));
    const holding: Holding = { owner, end };
    // Stolen from this very context, or lost without its notice.
    this.held.get(name)?.end();
    this.held.set(name, holding);
    this.watched.delete(name);
    this.ticker.adjust();
    return { release: () => this.letGo(name, holding), gone };
  }

  private async letGo(name: string, holding: Holding): Promise<void> {
    if (this.held.get(name) === holding) this.held.delete(name);
    this.ticker.adjust();
    // What cannot be deleted is raised no more, and so is free a few seconds later.
    await this.store.remove(name, holding.owner).catch(() => undefined);
    holding.end();
  }

  private watch(name: string, lease: Lease): void {
    const seen = this.watched.get(name);
    if ((seen !== undefined && isSameLease(seen.lease, lease)) || this.held.get(name)?.owner === lease.owner) return;
    this.watched.set(name, { lease, ticks: 0 });
    this.ticker.adjust();
  }

  private async tick(late: boolean): Promise<void> {
    await this.raise();
    if (this.watched.size === 0) return;
    const before = [...this.watched];
    const all = await this.read();
    for (const [name, seen] of before) {
      if (this.watched.get(name) !== seen) continue;
      const now = lookedAgain(seen, all.get(name), late);
      if (now === undefined) this.watched.delete(name);
      else this.watched.set(name, now);
    }
    this.ticker.adjust();
    if (this.watched.size > 0) this.beats.ask([...this.watched.keys()]);
  }

  /** Where nothing can be read, nothing is known of anybody: who asks again begins anew. */
  private read(): Promise<ReadonlyMap<string, Lease>> {
    return this.store.all().catch(() => new Map());
  }

  /** Raises the leases that are held. Where that fails the next tick tries again, and the fence guards the log. */
  private async raise(): Promise<void> {
    if (this.raising || this.held.size === 0) return;
    this.raising = true;
    const raised = new Map(this.held);
    const owners = new Map([...raised].map(([name, { owner }]) => [name, owner]));
    const lost = await this.store.beat(owners).catch(() => []);
    this.raising = false;
    for (const name of lost) {
      const holding = raised.get(name);
      if (holding === undefined || this.held.get(name) !== holding) continue;
      this.held.delete(name);
      holding.end();
    }
    this.ticker.adjust();
  }
}
