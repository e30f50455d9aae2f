import "fake-indexeddb/auto";
import { expect, onTestFinished, test, vi } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { KeyRing, type KeyStore } from "../../../src/storage/encryption/key-ring.js";
import { createEncryptionKey, type KeyRecord } from "../../../src/storage/encryption/keys.js";
import { keyIdOf } from "../../../src/storage/encryption/sealed.js";
import { openBroadcastChannel } from "../../../src/platform/channel.js";
import { Locking } from "../../../src/runtime/locking.js";
import type { RunnerHome } from "../../../src/runtime/runner-home.js";
import { encryption, fastKey, keysUsed, usesIn } from "./fast-key.js";
import { keysIn, restored, sealedDump } from "./kit.js";

/** Keys in memory. @param fails whether they can be read at the moment */
function memoryKeys(fails: () => boolean = () => false) {
  let record: KeyRecord | undefined;
  const store: KeyStore = {
    dbName: "memory",
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
  expect(usesIn(record())).toMatchObject({ current: 3, caughtUp: 1 });
  await ring.caughtUp((await ring.behind())!);
  expect(usesIn(record())).toMatchObject({ current: 3, caughtUp: 3 });
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
  const { signal } = new AbortController();
  await store.encryptRest!(signal);
  expect(await keysIn(db)).toContain(2);
  await store.encryptRest!(signal);
  expect(await keysIn(db)).toEqual(new Set([3]));
  expect(usesIn(await db.get("meta", "keys"))).toMatchObject({ current: 3, caughtUp: 3 });
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

/** How often keys were opened: each time a passphrase costs 600,000 rounds, and the one key for digests is unwrapped. */
function countOpenings(): () => number {
  const unwrap = vi.spyOn(crypto.subtle, "unwrapKey");
  onTestFinished(() => unwrap.mockRestore());
  return () => unwrap.mock.calls.filter(([, , , , kind]) => (kind as Algorithm).name === "HMAC").length;
}

test("whatever is read at once after another host's rotation opens the new keys once", async () => {
  const [own, other] = [new Encryption(encryption), new Encryption(encryption)];
  const { store } = memoryKeys();
  const [ring, rotated] = [own.ring(store), other.ring(store)];
  await ring.keys();
  await other.rotate();
  const sealed = await Promise.all([1, 2, 3, 4].map((n) => rotated.codec.encode(n, ["place", n])));
  const openings = countOpenings();
  const read = sealed.map((of, at) => ring.codec.decode(of, ["place", at + 1]));
  expect(await Promise.all(read)).toEqual([1, 2, 3, 4]);
  expect(openings()).toBe(1);
});

test("what is stored with a still newer key while the keys are opened anew is read", async () => {
  const [own, other] = [new Encryption(encryption), new Encryption(encryption)];
  const { store } = memoryKeys();
  const [ring, rotated] = [own.ring(store), other.ring(store)];
  await ring.keys();
  await other.rotate();
  const second = await rotated.codec.encode("second", ["place"]);
  let reads: Promise<unknown> | undefined;
  const unwrap = vi.spyOn(crypto.subtle, "unwrapKey");
  onTestFinished(() => unwrap.mockRestore());
  const real = unwrap.getMockImplementation() ?? SubtleCrypto.prototype.unwrapKey.bind(crypto.subtle);
  unwrap.mockImplementationOnce(async (...of) => {
    await other.rotate();
    const third = await rotated.codec.encode("third", ["place"]);
    reads = ring.codec.decode(third, ["place"]);
    return real(...of);
  });
  expect(await ring.codec.decode(second, ["place"])).toBe("second");
  expect(await reads).toBe("third");
});

test("a record that the key does not open is tried once, until there is another one or another key", async () => {
  const [own, other] = [new Encryption(encryption), new Encryption(encryption)];
  const { store } = memoryKeys();
  const [ring, changed] = [own.ring(store), other.ring(store)];
  const before = await ring.codec.encode("before", ["place"]);
  const next = await createEncryptionKey();
  await other.changeKey(fastKey, next);
  await other.rotate();
  const sealed = await changed.codec.encode("sealed", ["place"]);
  const openings = countOpenings();
  for (const _ of [1, 2, 3]) {
    const reads = [1, 2].map(() => ring.codec.decode(sealed, ["place"]));
    for (const read of reads) await expect(read).rejects.toMatchObject({ code: "wrong-key" });
  }
  expect(openings()).toBe(1);
  // Those that are open stay.
  expect(await ring.codec.decode(before, ["place"])).toBe("before");
  // Another record with the key that it has.
  await other.changeKey(next, fastKey);
  expect(await ring.codec.decode(sealed, ["place"])).toBe("sealed");
});

test("a database whose first key is wrong is not tried with it at each use", async () => {
  const [own, other] = [new Encryption({ key: await createEncryptionKey() }), new Encryption(encryption)];
  const { store } = memoryKeys();
  await other.ring(store).keys();
  const ring = own.ring(store);
  const openings = countOpenings();
  for (const _ of [1, 2, 3]) await expect(ring.keys()).rejects.toMatchObject({ code: "wrong-key" });
  expect(openings()).toBe(1);
  await own.unlock(fastKey);
  expect(await own.state()).toBe("unlocked");
});

/** Two hosts of a database; the second one has sealed something, and the first has rotated since. */
async function rotatedElsewhere() {
  const [one, two] = [new Encryption(encryption), new Encryption(encryption)];
  const { store, record } = memoryKeys();
  const opened = vi.fn();
  const [rotating, other] = [one.ring(store, opened), two.ring(store, opened)];
  await rotating.keys();
  await other.codec.encode("before", ["before"]);
  await one.rotate();
  const behind = (await rotating.behind())!;
  opened.mockClear();
  return { one, two, rotating, other, record, behind, opened };
}

test("what a host has sealed before it heard of a rotation is looked for once it is read, and it is told once", async () => {
  const { rotating, other, record, behind, opened } = await rotatedElsewhere();
  expect(await rotating.caughtUp(behind)).toBe(true);
  const late = await other.codec.encode("late", ["late"]);
  expect(keysUsed(record()!, [late])).toEqual(new Set([1]));
  expect(await rotating.behind()).toBeUndefined();
  await Promise.all([1, 2].map(async () => expect(await rotating.codec.decode(late, ["late"])).toBe("late")));
  await vi.waitFor(() => expect(usesIn(record())).toMatchObject({ current: 2, caughtUp: 1, isWhole: true }));
  expect(await rotating.behind()).toBeDefined();
  await vi.waitFor(() => expect(opened).toHaveBeenCalledOnce());
  expect(await rotating.caughtUp((await rotating.behind())!)).toBe(true);
  // What cannot be opened begins nothing.
  await expect(rotating.codec.decode(late, ["elsewhere"])).rejects.toBeDefined();
  expect(usesIn(record())).toMatchObject({ caughtUp: 2 });
});

test.each([
  ["after everything was encrypted anew", true],
  ["while everything is encrypted anew", false],
])("a host that hears of a rotation %s has what it wrote until then looked for", async (_, isBefore) => {
  const { rotating, other, two, record, behind, opened } = await rotatedElsewhere();
  if (isBefore) await rotating.caughtUp(behind);
  const read = await rotating.codec.encode("new", ["new"]);
  if (isBefore) await two.renew();
  else expect(await other.codec.decode(read, ["new"])).toBe("new");
  await vi.waitFor(() => expect(opened).toHaveBeenCalledTimes(2));
  expect(keysUsed(record()!, [await other.codec.encode("later", ["later"])])).toEqual(new Set([2]));
  // What began before does not count.
  expect(await rotating.caughtUp(behind)).toBe(false);
  expect(usesIn(record())).toMatchObject({ current: 2, caughtUp: 1, isWhole: true });
  const again = await other.behind();
  expect(await other.caughtUp(again!)).toBe(true);
  expect(usesIn(record())).toMatchObject({ current: 2, caughtUp: 2 });
});

test("a host that has sealed nothing with the old key has nothing looked for", async () => {
  const [one, two] = [new Encryption(encryption), new Encryption(encryption)];
  const { store, record } = memoryKeys();
  const [rotating, other] = [one.ring(store), two.ring(store)];
  await other.keys();
  await one.rotate();
  await rotating.caughtUp((await rotating.behind())!);
  const before = record();
  await two.renew();
  expect(await other.behind()).toBeUndefined();
  expect(record()).toBe(before);
});

test("hosts of a database hear of a rotation by their channel, and seal with the new key", async () => {
  const hosts = await Promise.all(
    [1, 2].map(async () => {
      const own = new Encryption(encryption);
      // Nothing is locked here: no runner is needed.
      const locking = new Locking(own, {} as RunnerHome, openBroadcastChannel("rotations"), () => undefined);
      onTestFinished(() => locking.close());
      return own;
    }),
  );
  const { store, record } = memoryKeys();
  const [rotating, other] = hosts.map((own) => own.ring(store));
  await Promise.all([rotating!.keys(), other!.keys()]);
  await hosts[0]!.rotate();
  await vi.waitFor(async () =>
    expect(keysUsed(record()!, [await other!.codec.encode("x", ["x"])])).toEqual(new Set([2])),
  );
});

/** An encryption that was locked, of a database with keys, and what is locked again when the keys are read next. */
async function locked() {
  const own = new Encryption(encryption);
  const { store, record } = memoryKeys();
  await own.ring(store).keys();
  await own.lock();
  /** @param reads so many of them come before. */
  const lockAfter = (reads: number): void => {
    const { load } = store;
    let left = reads;
    vi.spyOn(store, "load").mockImplementation(async () => {
      if (left-- === 0) own.forget();
      return load();
    });
  };
  return { own, record, lockAfter };
}

test.each([
  ["the key is checked", 0],
  ["the keys are opened", 1],
])("a lock that comes while %s is not undone by who unlocks", async (_, reads) => {
  const { own, lockAfter } = await locked();
  lockAfter(reads);
  const states: boolean[] = [];
  own.unlocked$.subscribe((state) => states.push(state));
  await expect(own.unlock(fastKey)).rejects.toMatchObject({ code: "locked" });
  await expect(own.currentKey()).rejects.toMatchObject({ code: "locked" });
  expect(await own.state()).toBe("locked");
  expect(states).toEqual([false]);
  await own.unlock(fastKey);
  expect(await own.state()).toBe("unlocked");
});

test("a lock that comes while unlocking fails leaves no older key behind", async () => {
  const own = new Encryption(encryption);
  const { store } = memoryKeys();
  own.ring(store);
  vi.spyOn(store, "replace").mockImplementationOnce(async () => {
    own.forget();
    throw new RunnerError("quota-exceeded");
  });
  await expect(own.unlock(await createEncryptionKey())).rejects.toMatchObject({ code: "locked" });
  await expect(own.currentKey()).rejects.toMatchObject({ code: "locked" });
});

test("a lock that comes before a key is changed leaves it as it was", async () => {
  const { own, record, lockAfter } = await locked();
  const before = record();
  lockAfter(0);
  const next = await createEncryptionKey();
  await expect(own.changeKey(fastKey, next)).rejects.toMatchObject({ code: "locked" });
  expect(record()).toBe(before);
  await expect(own.currentKey()).rejects.toMatchObject({ code: "locked" });
});

test("a lock that comes while a key is being changed stays, and the call can be repeated", async () => {
  const { own, lockAfter } = await locked();
  // The two before are looks at who opens it.
  lockAfter(2);
  const next = await createEncryptionKey();
  await expect(own.changeKey(fastKey, next)).rejects.toMatchObject({ code: "locked" });
  await expect(own.currentKey()).rejects.toMatchObject({ code: "locked" });
  await own.changeKey(fastKey, next);
  expect(await own.state()).toBe("unlocked");
});

test("that all is encrypted is kept also where somebody has locked the database meanwhile", async () => {
  const [own, other] = [new Encryption(encryption), new Encryption(encryption)];
  const { store, record } = memoryKeys();
  const ring = own.ring(store);
  other.ring(store);
  await ring.keys();
  await own.rotate();
  const id = (await ring.behind())!;
  await other.countLock();
  expect(await ring.caughtUp(id)).toBe(true);
  expect(usesIn(record())).toMatchObject({ current: 2, caughtUp: 2, locks: 1 });
});
