import { NEVER } from "rxjs";
import { expect, test } from "vitest";
import type { OpenChannel } from "../../../src/platform/channel.js";
import { LeaseWorld, LONG, SECOND_MS, secondsUntil, secondsUntilTaken, settled } from "./kit.js";

const never = new AbortController().signal;
const deaf: OpenChannel = () => ({ post: () => undefined, messages$: NEVER, close: () => undefined });

test("a dead holder's lease is taken over after its silence, and not before (L5, L9)", async () => {
  const world = new LeaseWorld();
  const [dying, next] = [world.context(), world.context()];
  await dying.locks.tryHold("t");
  for (let seconds = 0; seconds < LONG; seconds++) await world.second();
  await dying.die();
  const seconds = await secondsUntilTaken(world, next);
  expect(seconds).toBeGreaterThanOrEqual(5);
  expect(seconds).toBeLessThan(8);
});

test("a contender that asked once has watched when it asks again (L9)", async () => {
  const world = new LeaseWorld();
  const [dying, next] = [world.context(), world.context()];
  await dying.locks.tryHold("t");
  await dying.die();
  expect(await next.locks.tryHold("t")).toBeUndefined();
  for (let seconds = 0; seconds < 8; seconds++) await world.second();
  expect(await next.locks.tryHold("t")).toBeDefined();
});

test("a lease that was raised between the last look and the claim is not taken over (L5)", async () => {
  const world = new LeaseWorld();
  const [holder, next] = [world.context(), world.context()];
  const lock = await holder.locks.tryHold("t");
  holder.is = "frozen";
  await next.locks.tryHold("t");
  for (let seconds = 0; seconds < LONG; seconds++) await world.second();
  await world.wake(holder, LONG * SECOND_MS);
  expect(await next.locks.tryHold("t")).toBeUndefined();
  const gone = settled(lock!.gone);
  await world.idle();
  expect(gone()).toBe(false);
  // It is watched anew from here on.
  await holder.die();
  for (let seconds = 0; seconds < 8; seconds++) await world.second();
  expect(await next.locks.tryHold("t")).toBeDefined();
});

test("a holder that slept while its lease was taken over hears of it, and leaves it alone (L6)", async () => {
  const world = new LeaseWorld();
  const [frozen, next] = [world.context(), world.context()];
  const old = await frozen.locks.tryHold("t");
  const gone = settled(old!.gone);
  frozen.is = "frozen";
  let taken = await next.locks.tryHold("t");
  await secondsUntil(world, async () => (taken = await next.locks.tryHold("t")) !== undefined);
  expect([taken !== undefined, gone()]).toEqual([true, false]);
  next.is = "frozen";
  const before = world.rows.get("t");
  await world.wake(frozen, 60 * SECOND_MS);
  expect([gone(), frozen.clock.waiting]).toEqual([true, 0]);
  await world.second();
  await old!.release();
  expect(world.rows.get("t")).toEqual(before);
});

test("a holder that slept while nobody wanted its lease still has it", async () => {
  const world = new LeaseWorld();
  const [frozen, next] = [world.context(), world.context()];
  const lock = await frozen.locks.tryHold("t");
  const gone = settled(lock!.gone);
  frozen.is = "frozen";
  for (let seconds = 0; seconds < LONG; seconds++) await world.second();
  await world.wake(frozen, LONG * SECOND_MS);
  expect(await secondsUntilTaken(world, next)).toBe(Number.POSITIVE_INFINITY);
  expect(gone()).toBe(false);
});

test("a contender that sleeps again and again takes no living holder's lease (L5)", async () => {
  const world = new LeaseWorld();
  const [, sleeper] = [await world.context().locks.tryHold("t"), world.context()];
  for (let naps = 0; naps < LONG; naps++) {
    expect(await sleeper.locks.tryHold("t")).toBeUndefined();
    sleeper.is = "frozen";
    for (let seconds = 0; seconds < 10; seconds++) await world.second();
    await world.wake(sleeper, 10 * SECOND_MS);
  }
});

test("when everybody slept, the one that wakes first takes nothing from the others (L5)", async () => {
  const world = new LeaseWorld();
  const [holder, early] = [world.context(), world.context()];
  const lock = await holder.locks.tryHold("t");
  const life = await holder.locks.hold("life");
  const ended = settled(early.locks.whenFree("life", never));
  const gone = settled(lock!.gone);
  holder.is = "frozen";
  expect(await early.locks.tryHold("t")).toBeUndefined();
  for (let seconds = 0; seconds < 5; seconds++) await world.second();
  // All sleep now. It has seen the holder silent for five seconds, and wakes time and again before it, at the same hour.
  for (let wakes = 0; wakes < LONG; wakes++) {
    early.clock.today -= 3_599 * SECOND_MS;
    await world.wake(early, 3_600 * SECOND_MS);
    expect(await early.locks.tryHold("t")).toBeUndefined();
  }
  expect(ended()).toBe(false);
  await world.wake(holder, 3_600 * SECOND_MS);
  await world.second();
  expect([await early.locks.tryHold("t"), gone(), ended()]).toEqual([undefined, false, false]);
  await life.release();
});

test("a holder whose timers are throttled keeps its lease and its life while it hears those who ask (L5)", async () => {
  const world = new LeaseWorld();
  const [throttled, other] = [world.context(), world.context()];
  const lock = await throttled.locks.tryHold("t");
  await throttled.locks.hold("life");
  const over = [settled(lock!.gone), settled(other.locks.whenFree("life", never))];
  throttled.is = "throttled";
  for (let minutes = 0; minutes < 3; minutes++) {
    for (let seconds = 0; seconds < 60; seconds++) {
      await world.second();
      expect(await other.locks.tryHold("t")).toBeUndefined();
    }
    await world.wake(throttled, 60 * SECOND_MS);
    throttled.is = "throttled";
  }
  expect(over.map((is) => is())).toEqual([false, false]);
});

test("a time of day that is set back moves nothing (L5, L13)", async () => {
  const world = new LeaseWorld();
  const [holder, other] = [world.context(), world.context()];
  await holder.locks.tryHold("t");
  for (let seconds = 0; seconds < LONG; seconds++) {
    for (const { clock } of [holder, other]) clock.today -= 3_600 * SECOND_MS * (seconds % 3);
    expect(await other.locks.tryHold("t")).toBeUndefined();
    await world.second();
  }
  await holder.die();
  other.clock.today = 0;
  expect(await secondsUntilTaken(world, other)).toBeLessThan(9);
});

test("leases need no channel: where it drops everything, one holder each, and a dead one's is free (L5, L9)", async () => {
  const world = new LeaseWorld();
  const all = Array.from({ length: 3 }, () => world.context({ openChannel: deaf }));
  const granted = await Promise.all(all.map(({ locks }) => locks.tryHold("t")));
  const holder = all[granted.findIndex((lock) => lock !== undefined)]!;
  const others = all.filter((context) => context !== holder);
  // They take it for dead, which is all that they can be wrong about.
  await holder.locks.hold("life");
  const freed = others[0]!.locks.whenFree("life", never);
  for (let seconds = 0; seconds < LONG; seconds++) {
    for (const { locks } of others) expect(await locks.tryHold("t")).toBeUndefined();
    await world.second();
  }
  expect(await freed).toBe(true);
  await holder.die();
  expect(await secondsUntilTaken(world, others[0]!)).toBeLessThan(LONG);
});

test("when a dead host's life is over, its lease can be taken without a further wait (L9)", async () => {
  const world = new LeaseWorld();
  const [dying, other] = [world.context(), world.context()];
  await dying.locks.hold("life");
  const freed = settled(other.locks.whenFree("life", never));
  await dying.locks.tryHold("t");
  for (let seconds = 0; seconds < 3; seconds++) await world.second();
  await dying.die();
  expect(await secondsUntil(world, freed)).toBeLessThan(LONG);
  await world.second();
  expect(await other.locks.tryHold("t")).toBeDefined();
});

test("a context that neither holds nor watches has no timer", async () => {
  const world = new LeaseWorld();
  const [one, other] = [world.context(), world.context()];
  const timers = (): number[] => [one.clock.waiting, other.clock.waiting];
  expect(timers()).toEqual([0, 0]);
  const [lock, life] = [await one.locks.tryHold("t"), await one.locks.hold("life")];
  await other.locks.tryHold("t");
  const given = new AbortController();
  const watched = other.locks.whenFree("life", given.signal);
  expect(timers()).toEqual([2, 2]);
  // It lives: it has been seen to raise its lease.
  await world.second();
  await world.second();
  expect(timers()).toEqual([2, 1]);
  given.abort();
  await Promise.all([watched, lock!.release(), life.release()]);
  expect(timers()).toEqual([0, 0]);
});

test("closed, it has let go of everything and refuses what is asked", async () => {
  const world = new LeaseWorld();
  const [one, other] = [world.context(), world.context()];
  const lock = await one.locks.tryHold("t");
  const life = await one.locks.hold("life");
  const freed = other.locks.whenFree("life", never);
  const watching = one.locks.whenFree("other", never);
  await one.locks.close();
  await Promise.all([lock!.gone, life.gone]);
  expect([await freed, await watching, one.clock.waiting]).toEqual([true, false, 0]);
  expect(await other.locks.tryHold("t")).toBeDefined();
  await expect(one.locks.tryHold("t")).rejects.toMatchObject({ code: "closed" });
});
