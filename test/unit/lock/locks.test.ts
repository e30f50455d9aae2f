import { expect, test } from "vitest";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { nextTask } from "../../../src/platform/clock.js";
import { mortalLocks } from "../runner/kit.js";
import { ChannelWorld, settled } from "./kit.js";
import { describeLives } from "./lives.suite.js";

const manager = inProcessLockManager();

/** Contexts of one process that compete for the same locks. */
const contexts = (count: number) => Array.from({ length: count }, () => mortalLocks(manager));

let names = 0;
const freshName = (): string => `thread-${++names}`;

test("of many who ask for a lock at once, one gets it (L5)", async () => {
  const name = freshName();
  for (let round = 0; round < 5; round++) {
    const asked = contexts(8).flatMap(({ locks }) => [locks.tryHold(name), locks.tryHold(name)]);
    const granted = (await Promise.all(asked)).filter((lock) => lock !== undefined);
    expect(granted).toHaveLength(1);
    await granted[0]!.release();
  }
});

test("locks of other names are other locks", async () => {
  const all = contexts(2);
  const each = [freshName(), freshName(), freshName()];
  const granted = await Promise.all(each.map((name, n) => all[n % 2]!.locks.tryHold(name)));
  expect(granted.filter((lock) => lock !== undefined)).toHaveLength(3);
});

test("what is released is granted at once, to whoever was refused as to others (L5)", async () => {
  const name = freshName();
  const [one, refused, other] = contexts(3).map(({ locks }) => locks);
  for (const next of [refused!, other!, one!]) {
    const lock = await one!.tryHold(name);
    expect(await refused!.tryHold(name)).toBeUndefined();
    await lock!.release();
    const granted = await next.tryHold(name);
    expect(granted).toBeDefined();
    await granted!.release();
  }
});

test("a dead holder's lock is free, for one (L7, L9)", async () => {
  const name = freshName();
  const [dying, ...others] = contexts(3);
  await dying!.locks.tryHold(name);
  await dying!.die();
  const taken = await Promise.all(others.map(({ locks }) => locks.tryHold(name)));
  expect(taken.filter((lock) => lock !== undefined)).toHaveLength(1);
});

test("a stolen lock is the thief's, and its old holder hears of it (L6)", async () => {
  const name = freshName();
  const [holder, thief, other] = contexts(3).map(({ locks }) => locks);
  const old = await holder!.tryHold(name);
  const stolen = await thief!.steal(name);
  expect(await other!.tryHold(name)).toBeUndefined();
  await old!.gone;
  await old!.release();
  expect(await other!.tryHold(name)).toBeUndefined();
  await stolen.release();
  expect(await other!.tryHold(name)).toBeDefined();
});

test("a lock that nobody holds is stolen as well, and one's own, which the old lock has nothing to do with", async () => {
  const name = freshName();
  const [holder, contender] = contexts(2).map(({ locks }) => locks);
  const one = await holder!.steal(name);
  const other = await holder!.steal(name);
  await one.gone;
  await one.release();
  const gone = settled(other.gone);
  expect(await contender!.tryHold(name)).toBeUndefined();
  await nextTask();
  expect(gone()).toBe(false);
});

test("a release again does nothing", async () => {
  const name = freshName();
  const [one, other] = contexts(2).map(({ locks }) => locks);
  const lock = await one!.tryHold(name);
  await lock!.release();
  await lock!.gone;
  const next = await other!.tryHold(name);
  await lock!.release();
  expect(await one!.tryHold(name)).toBeUndefined();
  await next!.release();
});

describeLives("lives by Web Locks, in one process", () => {
  const own = inProcessLockManager();
  return {
    context: () => {
      const { locks, die } = mortalLocks(own);
      return { lives: locks, die };
    },
    second: nextTask,
  };
});

describeLives("lives over a channel", () => new ChannelWorld());
