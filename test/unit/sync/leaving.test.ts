import { expect, test, vi } from "vitest";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { fastKey } from "../encryption/fast-key.js";
import { agentOf, counter, freshDb, gated } from "../runner/kit.js";
import {
  device,
  eventually,
  inStep,
  makeDevice,
  MemoryServer,
  say,
  shown,
  tree,
  types,
  type Device,
  same,
} from "./kit.js";

/*
 * A device with few places: what was not changed for longest leaves it, and comes again when somebody opens it.
 */

const IDS = ["t0", "t1", "t2", "t3"] as const;

type Options = NonNullable<Parameters<typeof makeDevice>[2]>;

/** A space with threads of two runs each, `t0` the oldest, and a phone that has opened them all and was closed. */
async function opened(options: Options = {}) {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop", {
    ...(options.encryption && { encryption: new Encryption({ key: fastKey }) }),
  });
  const dbName = freshDb();
  const phone = makeDevice(server, "Phone", { ...options, dbName, keep: "opened" });
  await inStep(laptop, phone);
  for (const threadId of IDS) {
    await say(laptop, threadId, `${threadId}-r1`, agentOf(counter(3)));
    await eventually(async () => expect(await tree(phone, threadId)).toEqual(await tree(laptop, threadId)));
    await say(phone, threadId, `${threadId}-r2`, agentOf(counter(3)));
  }
  for (const threadId of IDS) {
    await eventually(async () => expect(Object.keys(await tree(laptop, threadId))).toHaveLength(2));
    await eventually(async () => expect(await tree(phone, threadId)).toEqual(await tree(laptop, threadId)));
  }
  const before = server.entries.length;
  await phone.close();
  return { server, laptop, dbName, before };
}

/** A host of the phone that has places for two threads. */
const phoneAgain = (server: MemoryServer, dbName: string, options: Options = {}): Device =>
  device(server, "Phone", { keep: "opened", maxThreads: 2, ...options, dbName });

async function absent({ runner }: Pick<Device, "runner">): Promise<string[]> {
  const both = await Promise.all([false, true].map((archived) => runner.listThreads({ archived })));
  return both.flatMap((threads) => threads.flatMap((one) => (one.absent ? [one.threadId] : []))).toSorted();
}

const leaves = (phone: Device, ...threadIds: string[]) =>
  eventually(async () => expect(await absent(phone)).toEqual(threadIds));

const list = async ({ runner }: Device) =>
  (await runner.listThreads()).map(({ threadId, title, updatedAt, lastStatus }) => {
    return { threadId, title, updatedAt, lastStatus };
  });

test.each([
  ["", undefined],
  [", encrypted", () => new Encryption({ key: fastKey })],
])("the threads beyond the limit leave, and come again whole when they are opened%s", async (_, encrypted) => {
  const options = (): Options => (encrypted === undefined ? {} : { encryption: encrypted() });
  const { server, laptop, dbName, before } = await opened(options());
  const phone = phoneAgain(server, dbName, options());
  await leaves(phone, "t0", "t1");
  expect((await list(phone)).map(({ threadId }) => threadId)).toEqual(["t3", "t2", "t1", "t0"]);
  expect(await list(phone)).toEqual(await list(laptop));
  // Nothing of their runs is left on the device, and nothing was deleted elsewhere.
  expect(await phone.store.runs("t0")).toEqual([]);
  expect(await phone.store.chunks("t0", 0, -1, 10)).toEqual([]);
  expect(server.entries).toHaveLength(before);
  await same("t0", phone, laptop);
  expect(await absent(phone)).toEqual(["t1"]);
  // It goes on, on both devices.
  await say(phone, "t0", "t0-r3", agentOf(counter(2)));
  await eventually(async () => expect(await tree(laptop, "t0")).toEqual(await tree(phone, "t0")));
  expect(await tree(laptop, "t0")).toMatchObject({ "t0-r3": { prev: "t0-r2" } });
});

test("a thread whose changes cannot be sent keeps no other thread here (L19)", async () => {
  const { server, dbName } = await opened();
  const before = makeDevice(server, "Phone", { dbName, keep: "opened" });
  await inStep(before);
  before.space.connect(false);
  await before.runner.updateThread("t0", { title: "Named here" });
  await before.close();
  const phone = phoneAgain(server, dbName);
  const key = await keyOfThread("t0");
  const { add } = phone.space;
  vi.spyOn(phone.space, "add").mockImplementation(async (thread, ...of) => {
    if (thread === key) throw new Error("planted");
    return add.call(phone.space, thread, ...of);
  });
  await leaves(phone, "t1", "t2");
});

test("a thread that somebody has opened stays as long as this host lives, and leaves the next one", async () => {
  const { server, dbName } = await opened();
  const phone = makeDevice(server, "Phone", { dbName, keep: "opened", maxThreads: 3 });
  const isOpened = shown(phone, "t0");
  await leaves(phone, "t1");
  await isOpened;
  await phone.close();
  await leaves(phoneAgain(server, dbName), "t0", "t1");
});

test("a thread that is opened in the moment in which it would leave stays", async () => {
  const { server, dbName } = await opened();
  const phone = phoneAgain(server, dbName, { maxThreads: 3 });
  const { leave } = phone.store;
  const leaving = vi.spyOn(phone.store, "leave").mockImplementation(async (...of) => {
    void phone.runner.getThreadMessages("t0");
    return leave!(...of);
  });
  await leaves(phone, "t1");
  expect(leaving.mock.calls.map(([{ threadId }]) => threadId)).toEqual(["t0", "t1"]);
});

test("what others add while a thread leaves is in the list, and in the thread when it comes again", async () => {
  const { server, laptop, dbName } = await opened();
  const phone = phoneAgain(server, dbName, { maxThreads: 3 });
  const { leave } = phone.store;
  vi.spyOn(phone.store, "leave").mockImplementationOnce(async (...of) => {
    const hasLeft = await leave!(...of);
    await laptop.runner.updateThread("t0", { title: "Renamed meanwhile" });
    await eventually(() => expect(types(server).at(-1)).toBe("thread"));
    return hasLeft;
  });
  await leaves(phone, "t0");
  await eventually(async () => expect(await list(phone)).toEqual(await list(laptop)));
  await same("t0", phone, laptop);
  expect((await phone.runner.getThread("t0"))?.title).toBe("Renamed meanwhile");
});

test("what was added offline leaves once the others have it, and a pinned thread never", async () => {
  const { server, laptop, dbName } = await opened();
  const before = makeDevice(server, "Phone", { dbName, keep: "opened" });
  await inStep(before);
  await before.runner.updateThread("t1", { pinned: true });
  await eventually(() => expect(types(server).at(-1)).toBe("thread"));
  before.space.connect(false);
  await say(before, "t0", "offline", agentOf(counter(2)));
  await before.close();
  const phone = phoneAgain(server, dbName, { maxThreads: 1 });
  await leaves(phone, "t0", "t2", "t3");
  expect(await tree(laptop, "t0")).toMatchObject({ offline: { prev: "t0-r2", status: "finished" } });
  await same("t0", phone, laptop);
});

test("nothing leaves offline", async () => {
  const { server, dbName } = await opened();
  const phone = makeDevice(server, "Phone", { dbName, keep: "opened", maxThreads: 1 });
  phone.space.connect(false);
  const leaving = vi.spyOn(phone.store, "leave");
  expect(await absent(phone)).toEqual([]);
  for (const threadId of IDS) expect(Object.keys(await tree(phone, threadId))).toHaveLength(2);
  await phone.close();
  expect(leaving).not.toHaveBeenCalled();
});

test("a thread whose run is live on another device stays until that has ended", async () => {
  const { server, laptop, dbName } = await opened();
  const { gate, letOn } = gated();
  const run = say(laptop, "t0", "t0-r3", agentOf(counter(3, (n) => (n === 1 ? gate : undefined))));
  await eventually(() => expect(types(server).at(-1)).toBe("events"));
  const phone = phoneAgain(server, dbName, { maxThreads: 3 });
  await leaves(phone, "t1");
  letOn();
  await run;
  await eventually(async () => expect(await tree(phone, "t0")).toEqual(await tree(laptop, "t0")));
});

test("a host that ends while a thread leaves loses nothing", async () => {
  const { server, laptop, dbName, before } = await opened();
  const dying = makeDevice(server, "Phone", { dbName, keep: "opened", maxThreads: 3 });
  const leaving = vi.spyOn(dying.store, "leave").mockRejectedValue(new Error("The browser ends"));
  vi.spyOn(dying.database, "put").mockImplementationOnce(dying.database.put.bind(dying.database));
  await eventually(() => expect(leaving).toHaveBeenCalled());
  await dying.close();
  const phone = device(server, "Phone", { dbName, keep: "opened" });
  for (const threadId of IDS) {
    await eventually(async () => expect(await tree(phone, threadId)).toEqual(await tree(laptop, threadId)));
  }
  expect(server.entries).toHaveLength(before);
});

test("a thread that has left is not taken for deleted where what was saved of it is lost", async () => {
  const { server, laptop, dbName, before } = await opened();
  const dying = makeDevice(server, "Phone", { dbName, keep: "opened", maxThreads: 3 });
  await inStep(dying);
  // A power failure: what is not written strictly may be gone.
  vi.spyOn(dying.database, "put").mockResolvedValue();
  vi.spyOn(dying.database, "set").mockResolvedValue();
  await leaves(dying, "t0");
  await dying.close();
  const phone = device(server, "Phone", { dbName, keep: "opened" });
  await inStep(phone);
  await same("t0", phone, laptop);
  expect(server.entries).toHaveLength(before);
});
