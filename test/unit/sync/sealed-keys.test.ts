import { expect, onTestFinished, test, vi } from "vitest";
import { Lazy } from "../../../src/platform/lazy.js";
import { RunnerError } from "../../../src/run/errors.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { createEncryptionKey } from "../../../src/storage/encryption/keys.js";
import { startSync } from "../../../src/sync/start.js";
import { KEYS_THREAD } from "../../../src/sync/thread-key.js";
import type { SyncState } from "../../../src/wire/shapes.js";
import { cheapPassphrases } from "../encryption/cheap-passphrases.js";
import { fastKey } from "../encryption/fast-key.js";
import { agentOf, collect, counter, freshDb, gated, inputOf, makeRunner } from "../runner/kit.js";
import {
  device,
  deviceOn,
  ended,
  eventually,
  inStep,
  MemoryServer,
  same,
  say,
  started,
  statusOf,
  tree,
  withKey,
  type Device,
} from "./kit.js";
import { flipped } from "./hostile-server.js";
import { MemorySpace } from "./memory-space.js";

/*
 * The keys of a space: who makes them, who has them, who is refused.
 */

cheapPassphrases();

/** Two devices whose first entries arrive together. */
class Together extends MemorySpace {
  static waiting: (() => void)[] = [];

  override async add(...[thread, ...of]: Parameters<MemorySpace["add"]>): Promise<number | undefined> {
    if (thread === KEYS_THREAD && this.server.entries.length === 0) {
      await new Promise<void>((resolve) => {
        Together.waiting.push(resolve);
        if (Together.waiting.length === 2) for (const go of Together.waiting) go();
      });
    }
    return super.add(thread, ...of);
  }
}

async function refused(one: Device): Promise<string> {
  await eventually(async () => expect(await statusOf(one)).toMatchObject({ is: "refused", isCurrent: false }));
  return (await statusOf(one)).message ?? "";
}

test("of two devices that begin a space at once, one makes its keys", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = ["Phone", "Laptop"].map((name) => {
    const made = deviceOn(new Together(server), name, withKey());
    onTestFinished(made.close);
    return made;
  }) as [Device, Device];
  await inStep(phone, laptop);
  expect(Together.waiting).toHaveLength(2);
  expect(server.entries).toHaveLength(1);
  await say(phone, "t", "r1", agentOf(counter(2)));
  await same("t", phone, laptop);
  expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1"]);
});

test("a device with another key is refused and told what to do; once its key is changed, it is in step", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(2)));
  const tablet = device(server, "Tablet", withKey());
  await eventually(async () => expect(await tree(tablet, "t")).toMatchObject({ r1: { status: "finished" } }));
  const other = await createEncryptionKey();
  const its = withKey(other);
  const laptop = device(server, "Laptop", its);
  expect(await refused(laptop)).toMatch(/another key.*changeKey/);
  const count = server.entries.length;
  await say(laptop, "u", "r2", agentOf(counter(1)));
  expect(server.entries).toHaveLength(count);
  await its.encryption.changeKey(other, fastKey);
  await inStep(laptop);
  await same("t", phone, laptop);
  await same("u", phone, laptop);
  expect(Object.keys(await tree(phone, "u"))).toEqual(["r2"]);
});

test("a device without encryption is refused in an encrypted space, and writes nothing there", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  await inStep(phone);
  const plain = device(server, "Plain");
  expect(await refused(plain)).toMatch(/give encryption/);
  await say(plain, "t", "r1", agentOf(counter(2)));
  expect(server.entries).toHaveLength(1);
});

test("a device with encryption is refused in a plain space, and writes nothing there", async () => {
  const server = new MemoryServer();
  const plain = device(server, "Plain");
  await inStep(plain);
  await say(plain, "t", "r1", agentOf(counter(2)));
  await eventually(() => expect(ended(server)).toBe(1));
  const count = server.entries.length;
  const phone = device(server, "Phone", withKey());
  expect(await refused(phone)).toMatch(/name a new space/);
  await say(phone, "u", "r2", agentOf(counter(2)));
  expect(server.entries).toHaveLength(count);
});

test("the key is changed on one device: the others go on, and new ones need the new key", async () => {
  const server = new MemoryServer();
  const [before, after] = [await createEncryptionKey(), await createEncryptionKey()];
  const its = withKey(before);
  const dbName = freshDb();
  const phone = device(server, "Phone", its);
  let laptop = device(server, "Laptop", { dbName, ...withKey(before) });
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(2)));
  // Offline: the space is told later.
  phone.space.connect(false);
  await its.encryption.changeKey(before, after);
  phone.space.connect(true);
  const keys = (): number => server.entries.filter(({ thread }) => thread === KEYS_THREAD).length;
  await eventually(() => expect(keys()).toBe(2));
  const late = device(server, "Late", withKey(before));
  expect(await refused(late)).toMatch(/another key/);
  // Neither an older record, added once more, nor a changed one opens it, or is in the way.
  const [first, second] = server.entries.filter(({ thread }) => thread === KEYS_THREAD);
  server.add(KEYS_THREAD, first!.body, second!.seq, "replayed");
  server.add(KEYS_THREAD, flipped(second!.body, 60), server.entries.length, "flipped");
  server.add(KEYS_THREAD, second!.body, server.entries.length, "replayed, too");
  const later = device(server, "Later", withKey(before));
  expect(await refused(later)).toMatch(/another key/);
  const tablet = device(server, "Tablet", withKey(after));
  await inStep(tablet);
  await laptop.close();
  laptop = device(server, "Laptop", { dbName, ...withKey(before) });
  await inStep(laptop);
  await say(laptop, "t", "r2", agentOf(counter(2)));
  await same("t", phone, laptop, tablet);
  expect(Object.keys(await tree(tablet, "t"))).toEqual(["r1", "r2"]);
  // What was told stays so where the servers lose everything, whoever comes first.
  for (const { space } of [phone, tablet]) space.connect(false);
  server.lose();
  await eventually(() => expect(keys()).toBe(1));
  const newest = device(server, "Newest", withKey(after));
  await inStep(newest);
  for (const { space } of [phone, tablet]) space.connect(true);
  await same("t", phone, laptop, tablet, newest);
});

test("servers that lost their disk are given everything again, also where a new device was there first", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(2)));
  phone.space.connect(false);
  server.lose();
  // It makes keys of its own.
  const tablet = device(server, "Tablet", withKey());
  await inStep(tablet);
  await say(tablet, "u", "r2", agentOf(counter(2)));
  phone.space.connect(true);
  for (const threadId of ["t", "u"]) {
    await eventually(async () => expect(await tree(tablet, threadId)).toEqual(await tree(phone, threadId)));
    await same(threadId, phone, tablet);
  }
  expect(Object.keys(await tree(tablet, "t"))).toEqual(["r1"]);
});

test("servers that lost their last entries, keys among them, are given them again", async () => {
  const server = new MemoryServer();
  const [before, after, last] = [await createEncryptionKey(), await createEncryptionKey(), await createEncryptionKey()];
  const its = withKey(before);
  const phone = device(server, "Phone", its);
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(2)));
  await eventually(() => expect(server.entries.length).toBeGreaterThan(4));
  const keys = (): number => server.entries.filter(({ thread }) => thread === KEYS_THREAD).length;
  await its.encryption.changeKey(before, after);
  await eventually(() => expect(keys()).toBe(2));
  phone.space.connect(false);
  server.entries.splice(3);
  phone.space.connect(true);
  await eventually(() => expect(keys()).toBe(2));
  const tablet = device(server, "Tablet", withKey(after));
  await eventually(async () => expect(Object.keys(await tree(tablet, "t"))).toEqual(["r1"]));
  await same("t", phone, tablet);
  await its.encryption.changeKey(after, last);
  await eventually(() => expect(keys()).toBe(3));
  await inStep(device(server, "Laptop", withKey(last)));
});

test("keys of one space do not open another one of the same key", async () => {
  const work = new MemoryServer();
  const phone = device(work, "Phone", { ...withKey(), spaceName: "work" });
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(2)));
  const tablet = device(work, "Tablet", { ...withKey(), spaceName: "private" });
  expect(await refused(tablet)).toMatch(/another key/);
});

test("a device that is offline has the keys, and sends later what it did", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  let phone = device(server, "Phone", { dbName, ...withKey() });
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(2)));
  await phone.close();
  phone = device(server, "Phone", { dbName, ...withKey() });
  phone.space.connect(false);
  await say(phone, "t", "r2", agentOf(counter(2)));
  await phone.runner.deleteThread("u");
  phone.space.connect(true);
  const laptop = device(server, "Laptop", withKey());
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1", "r2"]));
  await same("t", phone, laptop);
});

test("while the database is locked it is not in step, and says so; it begins and ends with the key", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(2)));
  const encryption = new Encryption();
  const options = { space: () => new MemorySpace(server), device: "Laptop" };
  const { runner, told, tells, isInStep } = started(options, { encryption });
  const locked = { is: "offline", isCurrent: false, message: expect.stringContaining("locked") };
  await eventually(() => expect(told).toEqual([expect.objectContaining(locked)]));
  expect((await statusOf(phone)).devices).toHaveLength(1);
  await encryption.unlock(fastKey);
  await isInStep();
  await eventually(async () => expect((await runner.listRuns("t")).map(({ runId }) => runId)).toEqual(["r1"]));
  await encryption.lock();
  await tells(locked);
  await eventually(async () => expect((await statusOf(phone)).devices).toHaveLength(1));
  await say(phone, "t", "r2", agentOf(counter(2)));
  await encryption.unlock(fastKey);
  const runs = async () => (await runner.listRuns("t")).map(({ runId, status }) => `${runId} ${status}`);
  await eventually(async () => expect(await runs()).toEqual(["r2 finished", "r1 finished"]));
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r3") }));
  await eventually(async () => expect(Object.keys(await tree(phone, "t"))).toEqual(["r1", "r2", "r3"]));
});

test.each(["the function that gives the key fails", "the storage fails"])(
  "%s at the start: it says so, and is in step once that is over, whether or not somebody uses the database",
  async (what) => {
    const server = new MemoryServer();
    const phone = device(server, "Phone", withKey());
    await inStep(phone);
    await say(phone, "t", "r1", agentOf(counter(2)));
    let fails = true;
    const key = () => (fails && what.includes("key") ? Promise.reject(new TypeError("planted")) : fastKey);
    const encryption = new Encryption({ key });
    const runner = makeRunner({ dbName: freshDb(), encryption });
    const { lockState } = runner;
    vi.spyOn(runner, "lockState").mockImplementation(() =>
      fails && what.includes("storage") ? Promise.reject(new RunnerError("storage-lost")) : lockState.call(runner),
    );
    const told: SyncState[] = [];
    const options = { space: () => new MemorySpace(server), device: "Laptop" };
    const over = startSync(runner, options, {
      tell: (state) => told.push(state),
      encryption: new Lazy(() => encryption),
    });
    await eventually(() => expect(told.at(-1)).toMatchObject({ is: "offline", isCurrent: false }));
    expect(told.at(-1)?.message).toMatch(/key|storage|database/);
    expect(told.at(-1)?.message).not.toContain("planted");
    fails = false;
    await eventually(async () => expect((await runner.listRuns("t")).map(({ runId }) => runId)).toEqual(["r1"]));
    expect(told.at(-1)).toMatchObject({ is: "online", isCurrent: true });
    await runner.close();
    await over;
  },
);

test("the key may be a passphrase", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey("a passphrase"));
  const laptop = device(server, "Laptop", withKey("a passphrase"));
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(2)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1"]));
  await same("t", phone, laptop);
});

test("a device that is given another space sends it everything, by keys of its own", async () => {
  const [first, second] = [new MemoryServer(), new MemoryServer()];
  const dbName = freshDb();
  const before = device(first, "Phone", { dbName, spaceName: "first", ...withKey() });
  await inStep(before);
  await say(before, "t", "r1", agentOf(counter(2)));
  await say(before, "t", "r4", agentOf(counter(2)));
  await eventually(() => expect(first.entries.length).toBeGreaterThanOrEqual(7));
  await before.close();
  const tablet = device(second, "Tablet", { spaceName: "second", ...withKey() });
  await inStep(tablet);
  // The logs have one name, and this one is longer.
  for (const runId of ["r2", "r3", "r5"]) await say(tablet, "u", runId, agentOf(counter(2)));
  await eventually(() => expect(second.entries.length).toBeGreaterThan(first.entries.length));
  const phone = device(second, "Phone", { dbName, spaceName: "second", ...withKey() });
  await inStep(phone);
  await eventually(async () => expect(Object.keys(await tree(tablet, "t"))).toEqual(["r1", "r4"]));
  await eventually(async () => expect(Object.keys(await tree(phone, "u"))).toEqual(["r2", "r3", "r5"]));
  await same("t", phone, tablet);
});

test("a device that has made keys for a space which was lost before it was read is in step with those that made others", async () => {
  const server = new MemoryServer();
  const space = new MemorySpace(server);
  const { gate, letOn } = gated();
  const { read } = space;
  let reads = 0;
  // The first finds no keys, the second looks for them, the third reads.
  vi.spyOn(space, "read").mockImplementation(async function* (after, signal) {
    if (++reads === 3) await gate;
    yield* read.call(space, after, signal);
  });
  const first = deviceOn(space, "First", withKey());
  onTestFinished(first.close);
  await eventually(() => expect(reads).toBe(3));
  await say(first, "t", "r1", agentOf(counter(2)));
  server.lose();
  const other = device(server, "Other", withKey());
  await inStep(other);
  await say(other, "t", "r2", agentOf(counter(2)));
  letOn();
  await same("t", first, other);
  expect(Object.keys(await tree(first, "t"))).toEqual(["r1", "r2"]);
});
