import "fake-indexeddb/auto";
import { expect, onTestFinished, test, vi } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { KeyRing, type KeyStore } from "../../../src/storage/encryption/key-ring.js";
import type { KeyRecord } from "../../../src/storage/encryption/keys.js";
import { keyIdOf } from "../../../src/storage/encryption/sealed.js";
import { dumpOf } from "../storage/raw.js";
import { encryption, fastKey } from "./fast-key.js";
import { payloadsIn, restored, sealedDump } from "./kit.js";

/** Keys in memory. @param fails whether they can be read at the moment */
function memoryKeys(fails: () => boolean = () => false) {
  let record: KeyRecord | undefined;
  const store: KeyStore = {
    load: async () => {
      if (fails()) throw new RunnerError("storage-lost");
      return record;
    },
    replace: async (from, to) => {
      if (from !== record) return false;
      record = to;
      return true;
    },
    content: async () => (record === undefined ? "nothing" : "sealed"),
  };
  return { store, record: () => record };
}

test("a database that is lost keeps no other from being locked, and the key is forgotten", async () => {
  const own = new Encryption(encryption);
  let isLost = false;
  const [lost, there] = [memoryKeys(() => isLost), memoryKeys()];
  for (const { store } of [lost, there]) own.ring(store);
  await own.unlock(fastKey);
  isLost = true;
  await expect(own.lock()).rejects.toMatchObject({ code: "storage-lost" });
  expect(there.record()?.locks).toBe(1);
  await expect(own.currentKey()).rejects.toMatchObject({ code: "locked" });
});

test("who has caught up with a data key says nothing of a newer one", async () => {
  const own = new Encryption(encryption);
  const { store, record } = memoryKeys();
  const ring = own.ring(store);
  await ring.keys();
  await own.rotate();
  const second = await ring.behind();
  await own.rotate();
  await ring.caughtUp(second!);
  expect(record()).toMatchObject({ current: 3, caughtUp: 1 });
  await ring.caughtUp((await ring.behind())!);
  expect(record()).toMatchObject({ current: 3, caughtUp: 3 });
  expect(await ring.behind()).toBeUndefined();
});

test("what is rotated while everything is encrypted anew is encrypted anew once more", async () => {
  const own = new Encryption(encryption);
  const { store, db } = await restored(await sealedDump(), { encryption: own });
  await own.rotate();
  const isCurrent = vi.spyOn(KeyRing.prototype, "isCurrent");
  onTestFinished(() => isCurrent.mockRestore());
  isCurrent.mockImplementation(async (stored) => {
    // Some are done.
    if (isCurrent.mock.calls.length === 40) await own.rotate();
    return keyIdOf(stored as Uint8Array<ArrayBuffer>) === (await db.get("meta", "keys")).current;
  });
  const keysIn = async () => new Set(payloadsIn(await dumpOf(db as never)).map(({ bytes }) => keyIdOf(bytes)));
  const { signal } = new AbortController();
  await store.encryptRest!(signal);
  expect(await keysIn()).toContain(2);
  await store.encryptRest!(signal);
  expect(await keysIn()).toEqual(new Set([3]));
  expect(await db.get("meta", "keys")).toMatchObject({ current: 3, caughtUp: 3 });
});

test("a key whose unlocking has failed is not used later", async () => {
  const own = new Encryption({});
  const { store } = memoryKeys();
  const ring = own.ring(store);
  vi.spyOn(store, "replace").mockRejectedValueOnce(new RunnerError("quota-exceeded"));
  await expect(own.unlock(fastKey)).rejects.toMatchObject({ code: "quota-exceeded" });
  await expect(ring.keys()).rejects.toMatchObject({ code: "locked" });
  await own.unlock(fastKey);
  expect(await own.state()).toBe("unlocked");
});
