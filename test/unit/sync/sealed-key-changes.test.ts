import { openDB } from "idb";
import { expect, test } from "vitest";
import { syncDbName } from "../../../src/platform/names.js";
import { isSealed } from "../../../src/storage/codec.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { createEncryptionKey } from "../../../src/storage/encryption/keys.js";
import { keyIdOf } from "../../../src/storage/encryption/sealed.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { KEYS_THREAD } from "../../../src/sync/thread-key.js";
import { fastKey } from "../encryption/fast-key.js";
import { agentOf, counter, freshDb } from "../runner/kit.js";
import { device, eventually, inStep, MemoryServer, say, started, statusOf, withKey } from "./kit.js";
import { MemorySpace } from "./memory-space.js";

const keysIn = (server: MemoryServer): number => server.entries.filter(({ thread }) => thread === KEYS_THREAD).length;

/** The space is opened by `after`, and by `before` no more. */
async function isChanged(server: MemoryServer, before: CryptoKey, after: CryptoKey): Promise<void> {
  await eventually(() => expect(keysIn(server)).toBe(2));
  const old = device(server, "Old", withKey(before));
  await eventually(async () => expect(await statusOf(old)).toMatchObject({ is: "refused" }));
  await inStep(device(server, "New", withKey(after)));
}

test("a key that is changed while the database is locked is told to the space: new devices need it", async () => {
  const server = new MemoryServer();
  const encryption = new Encryption();
  const options = { space: () => new MemorySpace(server), device: "Laptop" };
  const { tells, isInStep } = started(options, { encryption });
  await encryption.unlock(fastKey);
  await isInStep();
  await encryption.lock();
  await tells({ is: "offline" });
  const next = await createEncryptionKey();
  await encryption.changeKey(fastKey, next);
  await isInStep();
  await isChanged(server, fastKey, next);
});

test("a key that is changed where nothing is in step is told to the space later (L1)", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const first = device(server, "Phone", { dbName, ...withKey() });
  await inStep(first);
  await first.close();
  const next = await createEncryptionKey();
  const { encryption } = withKey();
  const store = indexedDBRunStore({ dbName, encryption });
  await store.lockState!();
  await encryption.changeKey(fastKey, next);
  await store.close();
  await inStep(device(server, "Phone", { dbName, ...withKey(next) }));
  await isChanged(server, fastKey, next);
});

test("what is known of the space is encrypted with the new data keys, from the next start on", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const its = withKey();
  const first = device(server, "Phone", { dbName, ...its });
  await inStep(first);
  for (const threadId of ["t", "u"]) await say(first, threadId, "r1", agentOf(counter(1)));
  await inStep(first);
  await its.encryption.rotate();
  await first.close();
  await inStep(device(server, "Phone", { dbName, ...withKey() }));
  const db = await openDB(syncDbName(dbName));
  const records: { readonly sealed: unknown }[] = await db.getAll("threads");
  const sealed = [...records.map((record) => record.sealed), await db.get("meta", "keys")];
  const seal: unknown = await db.get("meta", "seal");
  db.close();
  const log = await openDB(dbName);
  expect((await log.get("meta", "keys")).keys[1].id).toBe(seal);
  log.close();
  expect(sealed.length).toBeGreaterThan(2);
  expect(sealed.map((one) => isSealed(one) && keyIdOf(one))).toEqual(sealed.map(() => seal));
});
