import { expect, onTestFinished, test } from "vitest";
import { leaseLocks } from "../../src/lock/lease-locks.js";
import { beatLives } from "../../src/platform/beats.js";
import { leaseDbName } from "../../src/platform/names.js";
import { indexedDBLeaseStore } from "../../src/storage/indexeddb/leases.js";
import { describeLeaseStore } from "../unit/lock/lease-store.suite.js";
import { DrivenClock } from "../unit/lock/driven-clock.js";
import { LeaseWorld, SECOND_MS, settled } from "../unit/lock/kit.js";
import { describeLocks } from "../unit/lock/locks.suite.js";

/** A database of the test's own. */
function freshDb(): string {
  const dbName = `leases-${crypto.randomUUID()}`;
  onTestFinished(() => void indexedDB.deleteDatabase(leaseDbName(dbName)));
  return dbName;
}

describeLeaseStore("leases in IndexedDB, in the browser", () => {
  const dbName = freshDb();
  return () => {
    const store = indexedDBLeaseStore({ dbName });
    onTestFinished(() => store.close());
    return store;
  };
});

describeLocks("leases, in the browser", () => {
  const dbName = freshDb();
  return new LeaseWorld(() => indexedDBLeaseStore({ dbName }));
});

test("with all that the browser gives: one holder, the next one at once, and a life that is heard to end (L5, L9)", async () => {
  const dbName = freshDb();
  const [one, other] = [leaseLocks({ dbName }), leaseLocks({ dbName })];
  const tab = beatLives();
  onTestFinished(async () => {
    await Promise.all([one.close(), other.close()]);
    tab.close();
  });
  const life = await one.hold("life");
  const ended = [tab, other].map((lives) => lives.whenFree("life", new AbortController().signal));
  const lock = await one.tryHold("t");
  expect([lock !== undefined, await other.tryHold("t")]).toEqual([true, undefined]);
  await lock!.release();
  expect(await other.tryHold("t")).toBeDefined();
  await life.release();
  expect(await Promise.all(ended)).toEqual([true, true]);
});

test("a throttled context says over the real channel that it lives, when it is asked (L9)", async () => {
  const clock = new DrivenClock();
  const watcher = beatLives({ clock });
  const throttled = beatLives({ clock: new DrivenClock() });
  onTestFinished(() => {
    for (const each of [watcher, throttled]) each.close();
  });
  await throttled.hold("life");
  const ended = settled(watcher.whenFree("life", new AbortController().signal));
  for (let seconds = 0; seconds < 30; seconds++) {
    clock.pass(SECOND_MS);
    await roundTrip();
  }
  expect(ended()).toBe(false);
});

/** Long enough for a question and its answer: channels of one context deliver in the order of the posts. */
async function roundTrip(): Promise<void> {
  const name = `round-trip-${crypto.randomUUID()}`;
  const [one, other] = [new BroadcastChannel(name), new BroadcastChannel(name)];
  const back = new Promise<void>((resolve) => (one.onmessage = () => resolve()));
  other.onmessage = () => other.postMessage("back");
  one.postMessage("there");
  await back;
  one.close();
  other.close();
}
