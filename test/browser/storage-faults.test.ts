import { expect, test, vi } from "vitest";
import { cdp } from "vitest/browser";
import { baseAt, chunkOf, claimed, delta, foreignEnd, request, settlement, withRuns } from "../unit/storage/kit.js";
import { dumpOf, rawOf } from "../unit/storage/raw.js";
import { freshName, opened } from "../unit/storage/stores.js";
import { LARGE, smallDisk } from "./small-disk.js";

const { origin } = location;

/** As the settings of a browser do it: connections are closed by force. */
const clearStorage = (): Promise<unknown> =>
  cdp().send("Storage.clearDataForOrigin", { origin, storageTypes: "indexeddb" });

const full = { code: "quota-exceeded" };

test("on a full disk each write says so and writes nothing, and all reads go on (L10)", async () => {
  const disk = await smallDisk();
  const dbName = freshName();
  const store = opened(dbName);
  const head = await withRuns(store, "idle", ["r0", "r1"]);
  const claim = await claimed(store, "t", "r");
  await store.append(claim, chunkOf(claim, 0, [delta("a")]));
  const db = await rawOf(dbName);
  const before = await dumpOf(db);
  const input = { messages: [{ id: "u", role: "user" as const, content: LARGE }] };
  await expect(store.append(claim, chunkOf(claim, 1, [delta(LARGE)]))).rejects.toMatchObject(full);
  await expect(store.claim(request("other", "r", { input }))).rejects.toMatchObject(full);
  const end = settlement(claim, 1);
  const derived = { ...end.derived, state: LARGE };
  await expect(store.settle(claim, { ...end, derived })).rejects.toMatchObject(full);
  const build: typeof foreignEnd = (run, seq) => chunkOf({ ...claim, ...run }, seq, [delta(LARGE)]);
  await expect(store.settleForeign("t", "r", "broken", 4_000, build)).rejects.toMatchObject(full);
  await expect(store.cut("idle", head.epoch, { ...baseAt(1), state: LARGE })).rejects.toMatchObject(full);
  expect(await dumpOf(db)).toEqual(before);
  expect(await store.chunks("t", 0, -1, 10)).toHaveLength(1);

  await disk.free();
  expect(await store.append(claim, chunkOf(claim, 1, [delta(LARGE)]))).toEqual({});
  expect(await store.settle(claim, settlement(claim, 2))).toBe("settled");
});

test("storage that the browser clears under an open connection is begun anew, and nothing hangs (L10, L13)", async () => {
  const store = opened();
  const claim = await claimed(store, "t", "r");
  await store.append(claim, chunkOf(claim, 0, [delta("a")]));
  await clearStorage();
  const append = (): Promise<unknown> =>
    store.append(claim, chunkOf(claim, 1, [delta("b")])).catch((error: { code: string }) => error.code);
  // For a moment after it was cleared, the browser may open no database.
  let end = await append();
  while (end === "storage-unavailable" || end === "storage-lost") end = await append();
  expect(end).toBe("fenced");
  expect(await store.head("t")).toBeUndefined();
  expect(await claimed(store, "t", "r")).toMatchObject({ runIndex: 0, epoch: 1 });
});

test("storage that is cleared under many writes ends each of them typed, and is begun anew (L10, L13)", async () => {
  const store = opened();
  const claims = await Promise.all(["t0", "t1", "t2", "t3"].map((threadId) => claimed(store, threadId, "r")));
  const writing = claims.map(async (claim) => {
    for (let seq = 0; ; seq++) {
      const end = await store
        .append(claim, chunkOf(claim, seq, [delta("a")]))
        .catch((error: { code: string }) => error.code);
      if (typeof end === "string") return end;
    }
  });
  await clearStorage();
  // Whoever reopens it while it is being cleared loses it a second time.
  for (const end of await Promise.all(writing)) expect(["fenced", "storage-lost"]).toContain(end);
  await vi.waitFor(async () => expect(await store.liveHeads()).toEqual([]));
});
