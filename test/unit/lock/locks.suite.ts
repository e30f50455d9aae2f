import { describe, expect, test } from "vitest";
import type { HeldLock } from "../../../src/platform/locks.js";
import { LONG, secondsUntil, settled, type LockContext, type LockWorld } from "./kit.js";

/** The law of every `Locks`. `create` makes a world of contexts in which nothing is held. */
export function describeLocks(name: string, create: () => LockWorld): void {
  const never = new AbortController().signal;

  /** The contexts of a fresh world. */
  function contexts(count: number): {
    readonly world: LockWorld;
    readonly all: readonly LockContext[];
    readonly first: LockContext;
  } {
    const world = create();
    const all = Array.from({ length: count }, () => world.context());
    return { world, all, first: all[0]! };
  }

  /** Tries once a second. */
  async function takenBy({ locks }: LockContext, world: LockWorld): Promise<HeldLock | undefined> {
    let lock: HeldLock | undefined;
    await secondsUntil(world, async () => (lock = await locks.tryHold("t")) !== undefined);
    return lock;
  }

  describe(name, () => {
    test("of many who ask for a lock at once, one gets it (L5)", async () => {
      const { all } = contexts(8);
      for (let round = 0; round < 5; round++) {
        const asked = all.flatMap(({ locks }) => [locks.tryHold("t"), locks.tryHold("t")]);
        const granted = (await Promise.all(asked)).filter((lock) => lock !== undefined);
        expect(granted).toHaveLength(1);
        await granted[0]!.release();
      }
    });

    test("locks of other names are other locks", async () => {
      const { all } = contexts(2);
      const names = ["t1", "t2", "t3"];
      const granted = await Promise.all(names.map((each, n) => all[n % 2]!.locks.tryHold(each)));
      expect(granted.filter((lock) => lock !== undefined)).toHaveLength(3);
    });

    test("what is released is granted at once, to whoever was refused as to others (L5)", async () => {
      const { all } = contexts(3);
      const [one, refused, other] = all.map(({ locks }) => locks);
      for (const next of [refused!, other!, one!]) {
        const lock = await one!.tryHold("t");
        expect(await refused!.tryHold("t")).toBeUndefined();
        await lock!.release();
        const granted = await next.tryHold("t");
        expect(granted).toBeDefined();
        await granted!.release();
      }
    });

    test("a living holder keeps its lock, however long and often others ask (L5)", async () => {
      const { world, all, first } = contexts(3);
      const lock = await first.locks.tryHold("t");
      const gone = settled(lock!.gone);
      for (let seconds = 0; seconds < LONG; seconds++) {
        for (const { locks } of all) expect(await locks.tryHold("t")).toBeUndefined();
        await world.second();
      }
      expect(gone()).toBe(false);
    });

    test("a dead holder's lock is free in the end, for one (L7, L9)", async () => {
      const { world, all, first } = contexts(3);
      await first.locks.tryHold("t");
      await first.die();
      const taken = await Promise.all([takenBy(all[1]!, world), takenBy(all[2]!, world)]);
      expect(taken.filter((lock) => lock !== undefined)).toHaveLength(1);
    });

    test("a stolen lock is the thief's, and its old holder hears of it (L6)", async () => {
      const { world, all, first } = contexts(3);
      const old = await first.locks.tryHold("t");
      const stolen = await all[1]!.locks.steal("t");
      expect(await all[2]!.locks.tryHold("t")).toBeUndefined();
      expect(await secondsUntil(world, settled(old!.gone))).toBeLessThan(LONG);
      await old!.release();
      for (let seconds = 0; seconds < LONG; seconds++) {
        expect(await all[2]!.locks.tryHold("t")).toBeUndefined();
        await world.second();
      }
      await stolen.release();
      expect(await all[2]!.locks.tryHold("t")).toBeDefined();
    });

    test("a lock that nobody holds is stolen as well, and one's own, which the old lock has nothing to do with", async () => {
      const { world, all, first } = contexts(2);
      const one = await first.locks.steal("t");
      const other = await first.locks.steal("t");
      expect(await secondsUntil(world, settled(one.gone))).toBeLessThan(LONG);
      await one.release();
      const gone = settled(other.gone);
      for (let seconds = 0; seconds < LONG; seconds++) {
        expect(await all[1]!.locks.tryHold("t")).toBeUndefined();
        await world.second();
      }
      expect(gone()).toBe(false);
    });

    test("a release ends the lock for who watches it, and again it does nothing", async () => {
      const { all } = contexts(2);
      const lock = await all[0]!.locks.tryHold("t");
      await lock!.release();
      await lock!.gone;
      const next = await all[1]!.locks.tryHold("t");
      await lock!.release();
      expect(await all[0]!.locks.tryHold("t")).toBeUndefined();
      await next!.release();
    });

    test("a life is watched to its release, by others and by its own context", async () => {
      const { world, all, first } = contexts(3);
      const life = await first.locks.hold("life");
      const freed = all.map(({ locks }) => locks.whenFree("life", never));
      const heard = freed.map(settled);
      for (let seconds = 0; seconds < LONG; seconds++) await world.second();
      expect(heard.map((is) => is())).toEqual([false, false, false]);
      await life.release();
      await life.gone;
      expect(await Promise.all(freed)).toEqual([true, true, true]);
    });

    test("a life is watched to its death (L9)", async () => {
      const { world, all, first } = contexts(3);
      await first.locks.hold("life");
      const freed = all.slice(1).map(({ locks }) => locks.whenFree("life", never));
      await world.second();
      await first.die();
      expect(await secondsUntil(world, settled(Promise.all(freed)))).toBeLessThan(LONG);
      expect(await Promise.all(freed)).toEqual([true, true]);
    });

    test("a life that was released can be held again; the old lock has nothing to do with it", async () => {
      const { world, all, first } = contexts(2);
      const old = await first.locks.hold("life");
      await old.release();
      const anew = await first.locks.hold("life");
      const freed = all[1]!.locks.whenFree("life", never);
      const over = [settled(anew.gone), settled(freed)];
      await old.release();
      for (let seconds = 0; seconds < LONG; seconds++) await world.second();
      expect(over.map((is) => is())).toEqual([false, false]);
      await anew.release();
      expect(await freed).toBe(true);
    });

    test("a life that nobody holds has ended (L9)", async () => {
      const { world, first } = contexts(2);
      const freed = first.locks.whenFree("nobody", never);
      expect(await secondsUntil(world, settled(freed))).toBeLessThan(LONG);
      expect(await freed).toBe(true);
    });

    test("who gives up watching is told so at once", async () => {
      const { all, first } = contexts(2);
      await first.locks.hold("life");
      const given = new AbortController();
      const freed = all[1]!.locks.whenFree("life", given.signal);
      given.abort();
      expect(await freed).toBe(false);
      expect(await all[1]!.locks.whenFree("life", given.signal)).toBe(false);
    });
  });
}
