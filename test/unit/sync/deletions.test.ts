import { expect, test, vi } from "vitest";
import { invalidInput } from "../../../src/run/errors.js";
import { decodeMessage } from "../../../src/sync/messages.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { agentOf, collect, counter, freshDb, gated, inputOf, makeRunner } from "../runner/kit.js";
import {
  bothHave,
  device,
  ended,
  eventually,
  inStep,
  lineOf,
  MemoryServer,
  pair,
  passes,
  say,
  sayOffline,
  shown,
  tree,
  types,
  type Device,
  same,
} from "./kit.js";

/*
 * Threads that are deleted on one device, while others add to them, are away or begin them anew.
 */

test("a deleted thread is gone everywhere", async () => {
  const { phone, laptop } = await pair();
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(async () => expect(await laptop.runner.getThread("t")).toBeDefined());
  await laptop.runner.deleteThread("t");
  await eventually(async () => expect(await phone.runner.getThread("t")).toBeUndefined());
  await say(phone, "t", "r2", agentOf(counter(2)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r2: { prev: null, status: "finished" } }));
});

test("a thread that one device deletes and another has added to offline stays, with what was added", async () => {
  const { server, phone, laptop } = await bothHave("r1");
  phone.space.connect(false);
  await say(phone, "t", "r2", agentOf(counter(2)));
  await laptop.runner.deleteThread("t");
  await eventually(() => expect(types(server)).toContain("deleted"));
  phone.space.connect(true);
  await eventually(async () => {
    expect(await tree(laptop, "t")).toEqual({
      r1: { prev: null, status: "finished" },
      r2: { prev: "r1", status: "finished" },
    });
  });
  await same("t", laptop, phone);
});

test("a thread that another device adds to before its deletion is heard of stays, with all that was in it", async () => {
  const { server, phone, laptop } = await pair();
  laptop.space.connect(false);
  await say(phone, "t", "r1", agentOf(counter(1)));
  await say(laptop, "t", "r2", agentOf(counter(1)));
  await eventually(() => expect(ended(server)).toBe(1));
  const { store, channel } = phone.runner.joinDevices().parts;
  // What `deleteThread` does, and what it tells, with the other run between the two.
  await store.deleteThread("t");
  laptop.space.connect(true);
  await eventually(async () => expect(Object.keys(await tree(phone, "t"))).toEqual(["r2"]));
  channel.post({ type: "changed", threadId: "t", deleted: true });
  await eventually(async () => expect(await tree(phone, "t")).toEqual(await tree(laptop, "t")));
  expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1", "r2"]);
  expect(types(server)).not.toContain("deleted");
  channel.close();
});

test("a thread stays with all that was in it where the first run of others arrives before its deletion is heard of", async () => {
  const { server, phone, laptop } = await pair();
  phone.space.connect(false);
  await sayOffline(laptop, "t", "r1", agentOf(counter(1)));
  await say(phone, "t", "r2", agentOf(counter(1)));
  const { store, channel } = phone.runner.joinDevices().parts;
  const { placeRun } = store;
  let isFree = false;
  vi.spyOn(store, "placeRun").mockImplementation(async (run) => (isFree ? placeRun(run) : undefined));
  phone.space.connect(true);
  await eventually(() => expect(ended(server)).toBe(2));
  await store.deleteThread("t");
  isFree = true;
  await eventually(async () => expect(Object.keys(await tree(phone, "t"))).toEqual(["r1"]));
  channel.post({ type: "changed", threadId: "t", deleted: true });
  await eventually(async () => expect(Object.keys(await tree(phone, "t"))).toEqual(["r1", "r2"]));
  await same("t", laptop, phone);
  channel.close();
});

test("a deletion does not reach what another device adds before it is heard of", async () => {
  const { server, phone, laptop } = await bothHave("r1");
  const { store, channel } = phone.runner.joinDevices().parts;
  await store.deleteThread("t");
  await say(laptop, "t", "r2", agentOf(counter(1)));
  await eventually(() => expect(ended(server)).toBe(2));
  await inStep(phone);
  channel.post({ type: "changed", threadId: "t", deleted: true });
  await eventually(async () => expect(Object.keys(await tree(phone, "t"))).toEqual(["r1", "r2"]));
  await same("t", laptop, phone);
  channel.close();
});

test("a deletion that others had added to unseen, and whose host ended, is undone by the next one", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const [phone, laptop] = [device(server, "Phone", { dbName }), device(server, "Laptop")];
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1"]));
  await phone.store.deleteThread("t");
  await say(laptop, "t", "r2", agentOf(counter(1)));
  await eventually(() => expect(ended(server)).toBe(2));
  await inStep(phone);
  await phone.close();
  const again = device(server, "Phone", { dbName });
  await eventually(async () => expect(Object.keys(await tree(again, "t"))).toEqual(["r1", "r2"]));
  await same("t", laptop, again);
});

test("what the log's limits have cut off is no deletion", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const limits = { maxRunsPerThread: 2 };
  const [phone, laptop] = [device(server, "Phone", { dbName, limits }), device(server, "Laptop")];
  const runs = ["r1", "r2", "r3", "r4"];
  for (const runId of runs) await say(phone, "t", runId, agentOf(counter(1)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(runs));
  await eventually(async () => expect((await phone.store.head("t"))?.cut).toBe(true));
  await inStep(phone);
  await phone.close();
  const again = device(server, "Phone", { dbName, limits });
  await say(again, "t", "r5", agentOf(counter(1)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual([...runs, "r5"]));
  expect(types(server)).not.toContain("deleted");
});

test("a run of another device that this one had to leave out is no deletion", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const [phone, laptop] = [device(server, "Phone", { dbName }), device(server, "Laptop")];
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1"]));
  phone.space.connect(false);
  await sayOffline(laptop, "t", "r2", agentOf(counter(1)));
  await eventually(() => expect(ended(server)).toBe(2));
  vi.spyOn(phone.store, "placeRun").mockRejectedValueOnce(invalidInput("chunk", "It is none"));
  phone.space.connect(true);
  const key = await keyOfThread("t");
  await eventually(async () => expect((await phone.database.thread(key))?.state.active).toBe("r2"));
  expect(phone.said.join()).toContain("left out");
  await phone.close();
  const again = device(server, "Phone", { dbName });
  await inStep(again);
  await again.runner.updateThread("t", { title: "Still there" });
  await eventually(async () => expect((await laptop.runner.getThread("t"))?.title).toBe("Still there"));
  expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1", "r2"]);
  expect(types(server)).not.toContain("deleted");
});

test("a deletion that never was deletes nothing", async () => {
  const { server, phone, laptop } = await bothHave("r1");
  const { channel } = phone.runner.joinDevices().parts;
  channel.post({ type: "changed", threadId: "t", deleted: true });
  await say(phone, "t", "r2", agentOf(counter(1)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1", "r2"]));
  expect(types(server)).not.toContain("deleted");
  channel.close();
});

test("a deletion offline of a thread that others have added to does not count, and the device goes on reading", async () => {
  const { server, phone, laptop } = await bothHave("r1");
  phone.space.connect(false);
  await phone.runner.deleteThread("t");
  await say(laptop, "t", "r2", agentOf(counter(2)));
  await eventually(() => expect(ended(server)).toBe(2));
  phone.space.connect(true);
  await eventually(async () => expect(Object.keys(await tree(phone, "t"))).toEqual(["r1", "r2"]));
  await say(laptop, "t", "r3", agentOf(counter(3)));
  await say(laptop, "other", "r4", agentOf(counter(4)));
  await eventually(async () => {
    expect(await tree(phone, "t")).toEqual(await tree(laptop, "t"));
    expect(await tree(phone, "other")).toEqual(await tree(laptop, "other"));
  });
  await same("t", phone, laptop);
});

test("a live run whose thread is deleted, and kept by what another device added unseen, ends on all devices", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await inStep(phone, laptop);
  const { gate, letOn } = gated();
  const slow = agentOf(counter(4, (step) => (step === 2 ? gate : undefined)));
  laptop.space.connect(false);
  const going = [say(phone, "t", "p1", slow), say(laptop, "t", "l1", slow.clone())];
  for (const run of going) run.catch(() => undefined);
  await eventually(() => expect(types(server)).toContain("events"));
  await eventually(async () => expect(await laptop.runner.isRunning({ threadId: "t" })).toBe(true));
  laptop.space.connect(true);
  const sends = ({ name }: Device): boolean =>
    server.entries.flatMap(lineOf).some((line) => line.includes(`${name}: events`));
  await eventually(() => expect([phone, laptop].map(sends)).toEqual([true, true]));
  await phone.runner.deleteThread("t");
  letOn();
  await Promise.allSettled(going);
  await eventually(async () => {
    for (const { runner } of [phone, laptop]) expect(await runner.isRunning({ threadId: "t" })).toBe(false);
    expect(Object.keys(await tree(phone, "t"))).toContain("l1");
    expect(await tree(phone, "t")).toEqual(await tree(laptop, "t"));
    expect(await shown(phone, "t")).toEqual(await shown(laptop, "t"));
  });
});

test("a thread that two devices delete at once is gone on all of them, and can begin anew", async () => {
  const server = new MemoryServer();
  const three = [device(server, "Phone"), device(server, "Laptop"), device(server, "Tablet")] as const;
  const [phone, laptop, tablet] = three;
  await inStep(...three);
  await say(phone, "t", "p1", agentOf(counter(2)));
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ p1: { status: "finished" } }));
  await say(laptop, "t", "l1", agentOf(counter(2)));
  await eventually(async () => {
    for (const one of three) expect(await tree(one, "t")).toMatchObject({ l1: { status: "finished" }, p1: {} });
  });
  for (const one of [phone, laptop]) one.space.connect(false);
  for (const one of [phone, laptop]) expect(await one.runner.deleteThread("t")).toBe(true);
  for (const one of [phone, laptop]) one.space.connect(true);
  await inStep(...three);
  await eventually(() => expect(types(server).filter((type) => type === "deleted")).toHaveLength(2));
  await say(tablet, "t", "t1", agentOf(counter(1)));
  await eventually(async () => {
    for (const one of three) expect(Object.keys(await tree(one, "t"))).toEqual(["t1"]);
  });
  expect(types(server).filter((type) => type === "run")).toHaveLength(3);
});

test.each([
  ["deleted", [], []],
  ["deleted, and begun anew", ["r9"], ["r9"]],
  ["deleted, begun anew, and deleted and begun anew", ["r8", "", "r9"], ["r9"]],
])("a thread that was %s while no host kept it in step", async (_what, does, expected) => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const laptop = device(server, "Laptop");
  const phone = device(server, "Phone", { dbName });
  await say(phone, "t", "r1", agentOf(counter(1)));
  await say(phone, "t", "r2", agentOf(counter(1)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1", "r2"]));
  await inStep(phone, laptop);
  await phone.close();
  const alone = makeRunner({ dbName });
  await alone.deleteThread("t");
  for (const runId of does) {
    if (runId === "") await alone.deleteThread("t");
    else await collect(alone.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", runId) }));
  }
  await alone.close();
  const again = device(server, "Phone", { dbName });
  const tablet = device(server, "Tablet");
  for (const one of [laptop, again, tablet])
    await eventually(async () =>
      expect([one.name, ...Object.keys(await tree(one, "t"))]).toEqual([one.name, ...expected]),
    );
});

/** A thread that its device, which is offline, has deleted while its run was live; the other one shows it. */
async function deletedWhileLive() {
  const { phone, laptop } = await pair();
  const { gate, letOn } = gated();
  const run = say(phone, "t", "r1", agentOf(counter(6, (n) => (n === 3 ? gate : undefined))));
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "running" } }));
  phone.space.connect(false);
  const deleting = phone.runner.deleteThread("t");
  letOn();
  await Promise.all([deleting, run.catch(() => undefined)]);
  return { phone, laptop };
}

test("a thread that is deleted while a run of its device streams, and the device is offline, is gone everywhere", async () => {
  const { phone, laptop } = await deletedWhileLive();
  phone.space.connect(true);
  await inStep(phone, laptop);
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({}));
  expect(await tree(phone, "t")).toEqual({});
  await passes(50);
  expect([await tree(phone, "t"), await tree(laptop, "t")]).toEqual([{}, {}]);
});

test("a thread that is deleted while the end of its run is on its way is gone everywhere", async () => {
  const { phone, laptop } = await bothHave("r1");
  const [onItsWay, { gate, letOn }] = [gated(), gated()];
  const { space } = phone;
  const { add } = space;
  const adding = vi.spyOn(space, "add").mockImplementation(async (thread, body, at) => {
    const message = decodeMessage(body);
    if (typeof message === "object" && message.type === "end") {
      onItsWay.letOn();
      await gate;
    }
    return add.call(space, thread, body, at);
  });
  await say(phone, "t", "r2", agentOf(counter(1)));
  await onItsWay.gate;
  await phone.runner.deleteThread("t");
  letOn();
  adding.mockRestore();
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({}));
  await passes(50);
  expect([await tree(phone, "t"), await tree(laptop, "t")]).toEqual([{}, {}]);
});

test("a thread that two devices delete while a run of one of them is live begins anew on both", async () => {
  const { phone, laptop } = await deletedWhileLive();
  await laptop.runner.deleteThread("t");
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({}));
  phone.space.connect(true);
  await inStep(phone, laptop);
  await say(phone, "t", "r2", agentOf(counter(1)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r2"]));
  await same("t", phone, laptop);
});
