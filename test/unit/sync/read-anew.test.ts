import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock, type Clock } from "../../../src/platform/clock.js";
import type { SpaceEntry } from "../../../src/sync/space.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { agentOf, counter, gated } from "../runner/kit.js";
import { device, eventually, inStep, lineOf, MemoryServer, same, say, sayNow, tree, types } from "./kit.js";

/*
 * What a device does in a thread while it reads all of it again, and what it may take for old meanwhile.
 */

test("a device that reads a thread again starts nothing in it beside a live run of another device", async () => {
  const server = new MemoryServer();
  // Waits pass at once: what waits a bounded time gives up.
  let waits = 0;
  const after: Clock["after"] = (ms, signal) => {
    if (ms > 1_000 || ms < 100) return systemClock.after(ms, signal);
    waits++;
    return systemClock.after(10, signal);
  };
  const phone = device(server, "Phone", { clock: { ...systemClock, after } });
  const laptop = device(server, "Laptop");
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  const reading = gated();
  const { entries } = phone.space;
  vi.spyOn(phone.space, "entries").mockImplementation(async function* (...of): AsyncGenerator<SpaceEntry, void> {
    await reading.gate;
    yield* entries.apply(phone.space, of);
  });
  // Its entry is changed as it is added: it reads all again.
  const add = server.add.bind(server);
  vi.spyOn(server, "add").mockImplementationOnce((thread, body, ...of) => add(thread, body.slice(0, 9), ...of));
  await phone.runner.updateThread("t", { title: "Named" });
  await eventually(() => expect(phone.said.join()).toContain("lacks"));
  const { gate, letOn } = gated();
  const live = sayNow(laptop, "t", "r2", agentOf(counter(2, (step) => (step === 1 ? gate : undefined))));
  await eventually(() => expect(server.entries.flatMap(lineOf).join()).toContain("events r2"));
  const before = waits;
  const asked = sayNow(phone, "t", "r3", agentOf(counter(1)));
  const refused = expect(asked).rejects.toMatchObject({ code: "thread-busy", details: { device: "Laptop" } });
  await eventually(() => expect(waits).toBeGreaterThan(before + 20));
  expect(Object.keys(await tree(phone, "t"))).toEqual(["r1"]);
  reading.letOn();
  await refused;
  letOn();
  await live;
  await same("t", phone, laptop);
  expect(Object.keys(await tree(phone, "t"))).toEqual(["r1", "r2"]);
});

test.each([
  [{ archived: true }, { archived: false }],
  [{ pinned: true }, { pinned: false }],
  [{ title: "New" }, { title: "Old" }],
])("what people undo before others have heard of it is undone on all devices: %j", async (change, undo) => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await say(phone, "t", "r1", agentOf(counter(1)));
  await phone.runner.updateThread("t", { title: "Old" });
  await eventually(async () => expect(await laptop.runner.getThread("t")).toMatchObject({ title: "Old" }));
  const add = server.add.bind(server);
  const adding = vi.spyOn(server, "add").mockImplementationOnce((...of) => {
    void phone.store.updateThread("t", undo);
    return add(...of);
  });
  onTestFinished(() => adding.mockRestore());
  const told = types(server).length;
  await phone.runner.updateThread("t", change);
  await eventually(() => expect(types(server).slice(told)).toEqual(["thread", "thread"]));
  for (const one of [phone, laptop]) {
    await eventually(async () => expect(await one.runner.getThread("t")).toMatchObject(undo));
  }
});

test("threads whose ids differ in halves of surrogate pairs alone have keys of their own", async () => {
  const ids = ["plan \ud83c", "plan \ud83d", "plan \ufffd", '"plan \\ud83c"'];
  expect(new Set(await Promise.all(ids.map(keyOfThread))).size).toBe(4);
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  for (const id of ids) await say(phone, id, "r1", agentOf(counter(1)));
  for (const id of ids) await same(id, phone, laptop);
  expect(Object.keys(await tree(laptop, ids[1]!))).toEqual(["r1"]);
});
