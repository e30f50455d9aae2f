import { Observable, type MonoTypeOperatorFunction } from "rxjs";
import { onTestFinished } from "vitest";
import { leaseLocks } from "../../../src/lock/lease-locks.js";
import { nextTask } from "../../../src/platform/clock.js";
import type { Channel, OpenChannel } from "../../../src/platform/channel.js";
import { inProcessChannels } from "../../../src/platform/in-process-channel.js";
import type { Locks } from "../../../src/platform/locks.js";
import type { Lease, LeaseStore } from "../../../src/storage/indexeddb/leases.js";
import { DrivenClock } from "./driven-clock.js";
import { memoryLeaseStore } from "./memory-lease-store.js";

export const SECOND_MS = 1_000;
/** More seconds than any silence that means something. */
export const LONG = 30;

export interface LockContext {
  readonly locks: Locks;
  /** Ends it without a word, as a killed process does. */
  die(): Promise<void> | void;
}

/** Several contexts that compete for the same locks. */
export interface LockWorld {
  context(): LockContext;
  /** Lets a second pass in all contexts that live, and what they do in it come to its end. */
  second(): Promise<void>;
}

/** Lets seconds pass until something is so. @returns how many passed; more than {@link LONG}: it never was */
export async function secondsUntil(world: LockWorld, isSo: () => boolean | Promise<boolean>): Promise<number> {
  for (let seconds = 0; seconds <= LONG; seconds++) {
    if (await isSo()) return seconds;
    await world.second();
  }
  return Number.POSITIVE_INFINITY;
}

/** Whether a promise has settled by now. */
export function settled(promise: Promise<unknown>): () => boolean {
  let is = false;
  const note = (): void => {
    is = true;
  };
  promise.then(note, note);
  return () => is;
}

/** Counts the work in stores, so that a test can wait for its end. */
export class WorkMeter {
  private open = 0;

  meter(store: LeaseStore): LeaseStore {
    const counted =
      <Args extends unknown[], T>(work: (...args: Args) => Promise<T>) =>
      async (...args: Args): Promise<T> => {
        this.open++;
        try {
          return await work(...args);
        } finally {
          this.open--;
        }
      };
    return {
      take: counted(store.take),
      replace: counted(store.replace),
      beat: counted(store.beat),
      remove: counted(store.remove),
      all: counted(store.all),
      close: () => store.close(),
    };
  }

  async idle(): Promise<void> {
    // What follows from work may be work again.
    for (let quiet = 0; quiet < 3; quiet = this.open === 0 ? quiet + 1 : 0) await nextTask();
  }
}

export interface LeaseContext extends LockContext {
  readonly locks: ReturnType<typeof leaseLocks>;
  readonly clock: DrivenClock;
  /**
   * - `throttled`: the world's seconds pass it by, but it hears.
   * - `frozen`: it hears nothing either, or only when it wakes.
   */
  is: "awake" | "throttled" | "frozen";
}

/** Holds back what comes while `frozen` says so: it is heard when `later` is called. */
const delayed =
  (frozen: () => boolean, later: (() => void)[]): MonoTypeOperatorFunction<unknown> =>
  (messages$) =>
    new Observable((subscriber) =>
      messages$.subscribe((message) => {
        if (frozen()) later.push(() => subscriber.next(message));
        else subscriber.next(message);
      }),
    );

export interface LeaseContextOptions {
  readonly openChannel?: OpenChannel;
  readonly store?: LeaseStore;
}

/** Contexts without Web Locks, whose time the test drives. */
export class LeaseWorld implements LockWorld {
  readonly rows = new Map<string, Lease>();
  readonly openChannel = inProcessChannels();
  private readonly contexts = new Set<LeaseContext>();
  private readonly unheard = new Map<LeaseContext, (() => void)[]>();
  private readonly work = new WorkMeter();
  private ids = 0;

  /** @param makeStore a store of its own for each context, all over the same leases */
  constructor(private readonly makeStore: () => LeaseStore = () => memoryLeaseStore(this.rows)) {}

  context({ openChannel = this.openChannel, store = this.makeStore() }: LeaseContextOptions = {}): LeaseContext {
    const clock = new DrivenClock();
    const channels: Channel[] = [];
    const unheard: (() => void)[] = [];
    const metered = this.work.meter(store);
    const locks = leaseLocks({
      dbName: "db",
      clock,
      openChannel: (name) => {
        const channel = openChannel(name);
        channels.push(channel);
        return { ...channel, messages$: channel.messages$.pipe(delayed(() => context.is === "frozen", unheard)) };
      },
      store: metered,
      makeId: () => `owner-${++this.ids}`,
    });
    const context: LeaseContext = {
      locks,
      clock,
      is: "awake",
      die: () => {
        this.contexts.delete(context);
        for (const channel of channels) channel.close();
      },
    };
    this.contexts.add(context);
    this.unheard.set(context, unheard);
    onTestFinished(() => locks.close());
    return context;
  }

  async second(): Promise<void> {
    for (const context of this.contexts) if (context.is === "awake") context.clock.pass(SECOND_MS);
    await this.work.idle();
  }

  /** Wakes a context after so long: its timers fire late, and once; then it hears what was said meanwhile. */
  async wake(context: LeaseContext, ms: number): Promise<void> {
    context.clock.pass(ms);
    await this.idle();
    context.is = "awake";
    for (const hear of this.unheard.get(context)?.splice(0) ?? []) hear();
    await this.idle();
  }

  /** Lets what is under way come to its end, while no time passes. */
  idle(): Promise<void> {
    return this.work.idle();
  }
}

/** How many seconds a context has to ask until it gets the lock; it is released again. */
export async function secondsUntilTaken(world: LeaseWorld, { locks }: LeaseContext): Promise<number> {
  return secondsUntil(world, async () => {
    const lock = await locks.tryHold("t");
    await lock?.release();
    return lock !== undefined;
  });
}
