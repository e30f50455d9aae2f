import fc from "fast-check";
import { NEVER } from "rxjs";
import { expect, test } from "vitest";
import { leaseLocks } from "../../../src/lock/lease-locks.js";
import { nextTask } from "../../../src/platform/clock.js";
import type { HeldLock } from "../../../src/platform/locks.js";
import type { Lease, LeaseStore } from "../../../src/storage/indexeddb/leases.js";
import { times, untilMet } from "../property.js";
import { DrivenClock } from "./driven-clock.js";
import { SECOND_MS, settled } from "./kit.js";
import { memoryLeaseStore } from "./memory-lease-store.js";

const CONTENDERS = 3;

/**
 * One step of a schedule.
 * - `tick`, `nap`: a second, or a minute in one, passes for this contender.
 * - `work`: the oldest transaction that it has asked for takes place.
 * - `run`: a second passes for it, and everything that it asks for takes place; `wait`: several, one by one.
 */
type Step = readonly ["tick" | "nap" | "work" | "run" | "wait" | "claim" | "steal" | "release", number];

const schedules = fc.array<Step>(
  fc.tuple(
    fc.oneof(
      { weight: 10, arbitrary: fc.constant("tick" as const) },
      { weight: 5, arbitrary: fc.constant("nap" as const) },
      { weight: 20, arbitrary: fc.constant("work" as const) },
      { weight: 40, arbitrary: fc.constant("run" as const) },
      { weight: 10, arbitrary: fc.constant("wait" as const) },
      { weight: 20, arbitrary: fc.constant("claim" as const) },
      { weight: 1, arbitrary: fc.constant("steal" as const) },
      { weight: 5, arbitrary: fc.constant("release" as const) },
    ),
    // The first one mostly: so others are slow, or sleep.
    fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat(CONTENDERS - 1) }),
  ),
  { minLength: 40, maxLength: 160 },
);

/** Transactions that take place when the schedule says so, those of one contender in their order. */
function scheduled(store: LeaseStore, queue: (() => void)[]): LeaseStore {
  const later =
    <Args extends unknown[], T>(work: (...args: Args) => Promise<T>) =>
    (...args: Args): Promise<T> =>
      new Promise((resolve, reject) => queue.push(() => void work(...args).then(resolve, reject)));
  return {
    take: later(store.take),
    replace: later(store.replace),
    beat: later(store.beat),
    remove: later(store.remove),
    all: later(store.all),
    close: () => store.close(),
  };
}

/** Somebody who believes to hold the lease. */
interface Belief {
  readonly owner: string;
  readonly lock: HeldLock;
  readonly over: () => boolean;
}

class Contender {
  readonly clock = new DrivenClock();
  readonly queue: (() => void)[] = [];
  beliefs: Belief[] = [];
  /** How many ticks it had that were not late. */
  ticks = 0;
  private readonly locks: ReturnType<typeof leaseLocks>;
  private lastOwner = "";

  constructor(store: LeaseStore, makeId: () => string) {
    this.locks = leaseLocks({
      dbName: "db",
      clock: this.clock,
      openChannel: () => ({ post: () => undefined, messages$: NEVER, close: () => undefined }),
      store: scheduled(store, this.queue),
      makeId: () => (this.lastOwner = makeId()),
    });
  }

  get holding(): Belief[] {
    return this.beliefs.filter(({ over }) => !over());
  }

  async step(what: Step[0]): Promise<void> {
    switch (what) {
      case "tick":
        this.ticks++;
        return this.clock.pass(SECOND_MS);
      case "nap":
        return this.clock.pass(60 * SECOND_MS);
      case "work":
        return this.queue.shift()?.();
      case "run":
        await this.step("tick");
        return this.rest();
      case "wait":
        for (let seconds = 0; seconds < 4; seconds++) await this.step("run");
        return;
      case "claim":
        return this.hear(this.locks.tryHold("t"));
      case "steal":
        return this.hear(this.locks.steal("t"));
      case "release":
        return void this.holding[0]?.lock.release();
    }
  }

  /** Everything that it asks for takes place. */
  async rest(): Promise<void> {
    await nextTask();
    while (this.queue.length > 0) {
      this.queue.shift()!();
      await nextTask();
    }
  }

  /** The owner is named before the call returns. */
  private hear(asked: Promise<HeldLock | undefined>): void {
    const owner = this.lastOwner;
    void asked.then((lock) => lock && this.beliefs.push({ owner, lock, over: settled(lock.gone) }));
  }
}

/** How often the schedules came to what they are about. */
const seen = { takeovers: 0, steals: 0, lost: 0 };

async function follow(steps: readonly Step[]): Promise<void> {
  const rows = new Map<string, Lease>();
  const memory = memoryLeaseStore(rows);
  const contenders: Contender[] = [];
  /** What each contender's ticks were when the lease was last raised or given away. */
  let ticksAtRaise: number[] = [];
  const raised = (): void => {
    ticksAtRaise = contenders.map(({ ticks }) => ticks);
  };
  /** For how many ticks of its contender each lease that was taken over had not been raised. */
  const silences: number[] = [];
  let ids = 0;
  for (let n = 0; n < CONTENDERS; n++) {
    const store: LeaseStore = {
      ...memory,
      async take(name, owner, over) {
        const before = rows.get(name);
        const refused = await memory.take(name, owner, over);
        if (refused === undefined) {
          if (before !== undefined) {
            seen.takeovers++;
            silences.push(contenders[n]!.ticks - ticksAtRaise[n]!);
          }
          raised();
        }
        return refused;
      },
      async replace(name, owner) {
        seen.steals++;
        await memory.replace(name, owner);
        raised();
      },
      async beat(owned) {
        const lost = await memory.beat(owned);
        if (lost.length === 0) raised();
        else seen.lost++;
        return lost;
      },
    };
    contenders.push(new Contender(store, () => `owner-${++ids}`));
  }

  const believers = (): Belief[] => contenders.flatMap(({ holding }) => holding);
  for (const [what, who] of steps) {
    await contenders[who]!.step(what);
    await nextTask();
    // Two may believe in it while one of them sleeps; the beat of one at most takes effect.
    const able = believers().filter(({ owner }) => rows.get("t")?.owner === owner);
    expect(able.length).toBeLessThanOrEqual(1);
    expect(Math.min(...silences)).toBeGreaterThanOrEqual(5);
  }
  // Awake again, whoever lost its lease knows, and whoever has it holds it.
  for (const contender of contenders) await contender.rest();
  for (let seconds = 0; seconds < 2; seconds++) for (const contender of contenders) await contender.step("run");
  expect(believers().map(({ owner }) => owner)).toEqual([...rows.values()].map(({ owner }) => owner));
}

test("whatever the schedule, no two can go on with a lease, and none is taken from who raises it (L5, L6)", async () => {
  await fc.assert(fc.asyncProperty(schedules, follow), times(300));
  // The cases are about something.
  await untilMet(seen, schedules, follow);
});
