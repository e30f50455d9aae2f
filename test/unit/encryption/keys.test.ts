import "fake-indexeddb/auto";
import { deleteDB, openDB } from "idb";
import { expect, onTestFinished, test, vi } from "vitest";
import { IndexedDBCheckpointStore } from "../../../src/checkpoint/indexeddb/indexeddb-checkpoint-store.js";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import { createEncryptionKey, type KeyRecord } from "../../../src/storage/encryption/keys.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { checkpoint } from "../checkpoint/kit.js";
import { freshDb } from "../runner/kit.js";
import { contents, withRuns } from "../storage/kit.js";
import { waiting } from "../storage/waiting.suite.js";
import { encryption, fastKey, usesIn } from "./fast-key.js";
import { keysIn, restored, sealedDump } from "./kit.js";

const base = await sealedDump();

/** A host of its own: a store, and what unlocks it. */
function host(dbName: string, key: CryptoKey | string = fastKey) {
  const own = new Encryption({ key });
  const store = indexedDBRunStore({ dbName, encryption: own });
  onTestFinished(() => store.close());
  return { store, encryption: own };
}

const flipped = (bytes: Uint8Array): Uint8Array => bytes.map((byte, at) => (at === 7 ? byte ^ 1 : byte));

test.each<[string, (record: KeyRecord) => unknown]>([
  ["that is none", () => "keys"],
  ["without a salt", ({ salt: _salt, ...rest }) => rest],
  ["of many rounds", (record) => ({ ...record, rounds: 2 ** 40 })],
  ["of few rounds", (record) => ({ ...record, rounds: 1 })],
  ["without keys", (record) => ({ ...record, keys: [] })],
  [
    "with a cut key",
    (record) => ({ ...record, keys: record.keys.map((key) => ({ ...key, wrapped: key.wrapped.slice(0, -1) })) }),
  ],
  [
    "with a changed key",
    (record) => ({ ...record, keys: record.keys.map((key) => ({ ...key, wrapped: flipped(key.wrapped) })) }),
  ],
  ["with a changed vector", (record) => ({ ...record, digest: { ...record.digest, iv: flipped(record.digest.iv) } })],
  ["with a cut vector", (record) => ({ ...record, digest: { ...record.digest, iv: new Uint8Array() } })],
  ["with one key in place of another", (record) => ({ ...record, digest: record.keys[0] })],
  [
    "whose key has another id",
    (record) => ({ ...record, current: 2, keys: record.keys.map((key) => ({ ...key, id: 2 })) }),
  ],
  ["that says that something is plain", (record) => ({ ...record, isWhole: false, caughtUp: 0 })],
  ["that says that more is encrypted anew", (record) => ({ ...record, caughtUp: record.caughtUp + 1 })],
])("a record of keys %s opens nothing, and is left as it is", async (_what, change) => {
  const { store, db } = await restored(base);
  const right = await db.get("meta", "keys");
  const wrong: unknown = change(structuredClone(right));
  await db.put("meta", wrong, "keys");
  const refused = { code: expect.stringMatching(/^(wrong-key|corrupt-record)$/) };
  await expect(contents(store, "b-varied", 2)).rejects.toMatchObject(refused);
  await expect(store.threads({ limit: 9, archived: false })).rejects.toMatchObject(refused);
  await expect(store.claim({ ...claimOf("new") })).rejects.toMatchObject(refused);
  await expect(store.encryptRest!(new AbortController().signal)).rejects.toMatchObject(refused);
  expect(await db.get("meta", "keys")).toEqual(wrong);
  // Nothing is lost.
  await db.put("meta", right, "keys");
  expect(await contents(store, "d-calls", 0)).toEqual(["said in d-calls"]);
});

const claimOf = (threadId: string) =>
  ({
    threadId,
    runId: "r",
    holder: "host-1",
    startedAt: 1,
    base: undefined,
    prevRunIndex: null,
    input: { messages: [] },
    fingerprint: "1:r",
    title: "a title",
  }) as const;

test("where the record of keys is gone, no other takes its place: what is encrypted would be lost", async () => {
  const { store, db, dbName } = await restored(base);
  const right = await db.get("meta", "keys");
  await db.delete("meta", "keys");
  const refused = { code: "corrupt-record", details: { store: "keys" } };
  await expect(contents(store, "d-calls", 0)).rejects.toMatchObject(refused);
  await expect(store.claim(claimOf("new"))).rejects.toMatchObject(refused);
  const own = new Encryption();
  const other = indexedDBRunStore({ dbName, encryption: own });
  onTestFinished(() => other.close());
  await expect(other.claim(claimOf("new"))).rejects.toMatchObject({ code: "locked" });
  await expect(other.lockState!()).rejects.toMatchObject(refused);
  await expect(own.unlock(fastKey)).rejects.toMatchObject(refused);
  expect(await db.get("meta", "keys")).toBeUndefined();
  await db.put("meta", right, "keys");
  expect(await contents(store, "d-calls", 0)).toEqual(["said in d-calls"]);
});

test("a database that is deleted under a store begins with keys of its own", async () => {
  const dbName = freshDb();
  const { store } = host(dbName);
  await withRuns(store, "t", ["r0"]);
  await deleteDB(dbName);
  await withRuns(store, "t", ["r1"]);
  expect(await contents(host(dbName).store, "t", 0)).toEqual(["from r1"]);
});

test("two hosts that begin to encrypt at once have the same keys", async () => {
  const dbName = freshDb();
  const hosts = [host(dbName), host(dbName), host(dbName)];
  await Promise.all(hosts.map(({ store }, n) => withRuns(store, `t${n}`, ["r0"])));
  for (const { store } of [...hosts, host(dbName)]) {
    for (const n of [0, 1, 2]) expect(await contents(store, `t${n}`, 0)).toEqual(["from r0"]);
  }
});

test("while one host rotates, another writes with the key it has, and each reads both", async () => {
  const dbName = freshDb();
  const one = host(dbName);
  const other = host(dbName);
  await withRuns(one.store, "t", ["r0"]);
  await withRuns(other.store, "u", ["r0"]);
  await Promise.all([one.encryption.rotate(), withRuns(other.store, "u", ["r1", "r2"])]);
  await one.store.encryptRest!(new AbortController().signal);
  await withRuns(one.store, "t", ["r1"]);
  await withRuns(other.store, "u", ["r3"]);
  for (const { store } of [one, other, host(dbName)]) {
    expect(await contents(store, "t", 1)).toEqual(["from r0", "from r1"]);
    expect(await contents(store, "u", 3)).toEqual(["from r0", "from r1", "from r2", "from r3"]);
  }
});

test("what another host writes with the old key after all was encrypted anew is encrypted anew once it is read", async () => {
  const dbName = freshDb();
  const [one, other] = [host(dbName), host(dbName)];
  await withRuns(other.store, "u", ["r0"]);
  await one.store.threads({ limit: 9, archived: false });
  await one.encryption.rotate();
  const { signal } = new AbortController();
  await one.store.encryptRest!(signal);
  // It has not heard of it: it reads nothing of what was encrypted anew.
  await other.store.addWaiting(waiting("w", { threadId: "v" }), 9);
  const db = await openDB(dbName);
  onTestFinished(() => db.close());
  expect(await keysIn(db)).toEqual(new Set([1, 2]));
  expect(await one.store.waitingRuns("v")).toMatchObject([{ runId: "w" }]);
  await vi.waitFor(async () =>
    expect(usesIn(await db.get("meta", "keys"))).toMatchObject({ caughtUp: 1, isWhole: true }),
  );
  await one.store.encryptRest!(signal);
  expect(await keysIn(db)).toEqual(new Set([2]));
  expect(usesIn(await db.get("meta", "keys"))).toMatchObject({ caughtUp: 2 });
});

test("after a rotation everything is encrypted anew, and the old key stays for who uses it", async () => {
  const { store, db, dbName } = await restored(base);
  const other = host(dbName);
  const before = await contents(store, "d-calls", 0);
  await other.store.threads({ limit: 9, archived: false });
  await other.encryption.rotate();
  await other.store.encryptRest!(new AbortController().signal);
  expect(await keysIn(db)).toEqual(new Set([2]));
  const record = await db.get("meta", "keys");
  expect(usesIn(record)).toMatchObject({ current: 2, caughtUp: 2, isWhole: true });
  expect(record.keys).toHaveLength(2);
  expect(await contents(store, "d-calls", 0)).toEqual(before);
});

test("after a change of the key another host goes on with what it has, and asks for the new one when it needs it", async () => {
  const dbName = freshDb();
  const one = host(dbName);
  const other = host(dbName);
  await withRuns(one.store, "t", ["r0"]);
  await withRuns(other.store, "u", ["r0"]);
  const next = await createEncryptionKey();
  await one.encryption.changeKey(fastKey, next);
  await withRuns(other.store, "u", ["r1"]);
  expect(await contents(other.store, "t", 0)).toEqual(["from r0"]);
  await one.encryption.rotate();
  await withRuns(one.store, "t", ["r1"]);
  await expect(contents(other.store, "t", 1)).rejects.toMatchObject({ code: "wrong-key" });
  // It has the old data key still.
  expect(await contents(other.store, "u", 1)).toEqual(["from r0", "from r1"]);
  await withRuns(other.store, "u", ["r2"]);
  await other.encryption.unlock(next);
  expect(await contents(other.store, "t", 1)).toEqual(["from r0", "from r1"]);
  await expect(contents(host(dbName).store, "t", 0)).rejects.toMatchObject({ code: "wrong-key" });
  expect(await contents(host(dbName, next).store, "u", 2)).toEqual(["from r0", "from r1", "from r2"]);
});

test("where the log was deleted alone, whoever is refused is told which database has another key", async () => {
  const dbName = freshDb();
  const before = new Encryption({ key: fastKey });
  const checkpoints = new IndexedDBCheckpointStore({ dbName, encryption: before });
  await checkpoints.save(checkpoint("c"));
  await checkpoints.close();
  const own = new Encryption();
  const store = indexedDBRunStore({ dbName, encryption: own });
  const left = new IndexedDBCheckpointStore({ dbName, encryption: own });
  onTestFinished(async () => void (await Promise.all([store.close(), left.close()])));
  expect(await store.lockState!()).toBe("new");
  const next = await createEncryptionKey();
  await expect(own.unlock(next)).rejects.toMatchObject({
    code: "wrong-key",
    message: expect.stringContaining(`${dbName}.checkpoints`) as string,
    details: { dbName: `${dbName}.checkpoints` },
  });
  const wrong = new IndexedDBCheckpointStore({ dbName, encryption: { key: next } });
  onTestFinished(() => wrong.close());
  await expect(wrong.get("c")).rejects.toMatchObject({ details: { dbName: `${dbName}.checkpoints` } });
});

test("a database that was not used yet takes part when the key is asked for, changed and rotated", async () => {
  const dbName = freshDb();
  await withRuns(host(dbName).store, "t", ["r0"]);
  const own = new Encryption();
  const store = indexedDBRunStore({ dbName, encryption: own });
  onTestFinished(() => store.close());
  expect(await own.state()).toBe("locked");
  await expect(own.unlock(await createEncryptionKey())).rejects.toMatchObject({ code: "wrong-key" });
  const later = new Encryption();
  const other = indexedDBRunStore({ dbName, encryption: later });
  onTestFinished(() => other.close());
  const next = await createEncryptionKey();
  await later.changeKey(fastKey, next);
  await expect(own.unlock(fastKey)).rejects.toMatchObject({ code: "wrong-key" });
  await own.unlock(next);
  expect(await contents(store, "t", 0)).toEqual(["from r0"]);
});

test("a store that is closed does not keep the others of its encryption from being unlocked", async () => {
  const shared = new Encryption({ key: fastKey });
  const dbName = freshDb();
  const closed = indexedDBRunStore({ dbName, encryption: shared });
  await withRuns(closed, "t", ["r0"]);
  const store = indexedDBRunStore({ dbName, encryption: shared });
  onTestFinished(() => store.close());
  await store.thread("t");
  await closed.close();
  await shared.lock();
  await expect(store.thread("t")).rejects.toMatchObject({ code: "locked" });
  await shared.unlock(fastKey);
  expect(await store.thread("t")).toMatchObject({ title: "hi" });
  expect(encryption.key).toBe(fastKey);
});

test.each<[string, (encryption: Encryption) => Promise<unknown>]>([
  ["a store", (own) => indexedDBRunStore({ dbName: freshDb(), encryption: own }).close()],
  ["a checkpoint store", (own) => new IndexedDBCheckpointStore({ dbName: freshDb(), encryption: own }).close()],
  ["a runner", (own) => new IndexedDBAgentRunner({ dbName: freshDb(), encryption: own }).close()],
])("%s that is closed before its keys are there is not asked for them any more", async (_, closedAtOnce) => {
  const shared = new Encryption();
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName, encryption: shared });
  onTestFinished(() => store.close());
  const closing = closedAtOnce(shared);
  await shared.unlock(fastKey);
  await closing;
  await withRuns(store, "t", ["r0"]);
  await shared.lock();
  const next = await createEncryptionKey();
  await shared.changeKey(fastKey, next);
  expect(await shared.state()).toBe("unlocked");
  expect(await contents(store, "t", 0)).toEqual(["from r0"]);
});

test("where one of several databases has neither key, no other is changed, also behind a call that was cut off", async () => {
  const [next, foreign] = await Promise.all([createEncryptionKey(), createEncryptionKey()]);
  const shared = new Encryption();
  const dbNames: string[] = [];
  for (const key of [next, fastKey, foreign]) {
    const dbName = freshDb();
    dbNames.push(dbName);
    await withRuns(host(dbName, key).store, "t", ["r0"]);
    const store = indexedDBRunStore({ dbName, encryption: shared });
    onTestFinished(() => store.close());
  }
  await expect(shared.changeKey(fastKey, next)).rejects.toMatchObject({ code: "wrong-key" });
  expect(await host(dbNames[1]!).store.thread("t")).toMatchObject({ title: "hi" });
});
