import { expect, test } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import { RunnerError } from "../../../src/run/errors.js";
import type { LeaseStore } from "../../../src/storage/indexeddb/leases.js";
import { LeaseWorld, LONG, secondsUntilTaken, settled } from "./kit.js";
import { memoryLeaseStore } from "./memory-lease-store.js";

/** A store whose calls fail while `failing` says so. */
function frail(store: LeaseStore, failing: () => boolean): LeaseStore {
  const call =
    <Args extends unknown[], T>(work: (...args: Args) => Promise<T>) =>
    (...args: Args): Promise<T> =>
      failing() ? Promise.reject(new RunnerError("storage-lost")) : work(...args);
  return {
    take: call(store.take),
    replace: call(store.replace),
    beat: call(store.beat),
    remove: call(store.remove),
    all: call(store.all),
    close: () => store.close(),
  };
}

test("a holder that cannot raise its lease for a while keeps it, unless somebody took it over (L10)", async () => {
  const world = new LeaseWorld();
  let failing = false;
  const holder = world.context({ store: frail(memoryLeaseStore(world.rows), () => failing) });
  const other = world.context();
  const lock = await holder.locks.tryHold("t");
  const gone = settled(lock!.gone);
  failing = true;
  for (let seconds = 0; seconds < LONG; seconds++) await world.second();
  failing = false;
  await world.second();
  expect([gone(), await secondsUntilTaken(world, other)]).toEqual([false, Number.POSITIVE_INFINITY]);
  failing = true;
  expect(await secondsUntilTaken(world, other)).toBeLessThan(LONG);
  failing = false;
  await world.second();
  expect(gone()).toBe(true);
});

test("a storage failure is told to who claims, and who looks in vain concludes nothing (L5, L10)", async () => {
  const world = new LeaseWorld();
  let failing = false;
  const holder = world.context();
  const other = world.context({ store: frail(memoryLeaseStore(world.rows), () => failing) });
  await holder.locks.tryHold("t");
  holder.is = "frozen";
  expect(await other.locks.tryHold("t")).toBeUndefined();
  failing = true;
  for (let seconds = 0; seconds < LONG; seconds++) await world.second();
  await expect(other.locks.tryHold("t")).rejects.toMatchObject({ code: "storage-lost" });
  await expect(other.locks.steal("t")).rejects.toMatchObject({ code: "storage-lost" });
  failing = false;
  expect(await other.locks.tryHold("t")).toBeUndefined();
});

test("a lease is let go of when that is written, not before (L5)", async () => {
  const world = new LeaseWorld();
  const store = memoryLeaseStore(world.rows);
  let write!: () => void;
  const written = new Promise<void>((resolve) => (write = resolve));
  const slow: LeaseStore = { ...store, remove: (name, owner) => written.then(() => store.remove(name, owner)) };
  const lock = await world.context({ store: slow }).locks.tryHold("t");
  const released = lock!.release();
  const over = [settled(released), settled(lock!.gone)];
  await nextTask();
  expect(over.map((is) => is())).toEqual([false, false]);
  write();
  await Promise.all([released, lock!.gone]);
  expect(world.rows.size).toBe(0);
});

test("a lease whose release could not be written is free after its silence (L7)", async () => {
  const world = new LeaseWorld();
  let failing = false;
  const holder = world.context({ store: frail(memoryLeaseStore(world.rows), () => failing) });
  const lock = await holder.locks.tryHold("t");
  failing = true;
  await lock!.release();
  failing = false;
  expect(await secondsUntilTaken(world, world.context())).toBeLessThan(LONG);
});
