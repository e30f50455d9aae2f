import { expect, onTestFinished, test, vi } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import type { SpaceFrame } from "../../../src/sync/space.js";
import { agentOf, counter, freshDb, gated } from "../runner/kit.js";
import {
  device,
  deviceOn,
  ended,
  eventually,
  inStep,
  makeDevice,
  MemoryServer,
  minutes,
  passes,
  say,
  sayNow,
  tree,
  types,
} from "./kit.js";
import { MemorySpace } from "./memory-space.js";

/*
 * What waits to be written down, where one thing waits for another.
 */

test("a live run ends also where an earlier one, which came back, waits for its end", async () => {
  const server = new MemoryServer();
  const time = minutes();
  const [phone, laptop, tablet] = [
    device(server, "Phone", { clock: time.clock }),
    device(server, "Laptop", { clock: time.clock }),
    device(server, "Tablet", { clock: time.clock }),
  ];
  await inStep(phone, laptop, tablet);
  const [first, last] = [gated(), gated()];
  const gates = new Map([
    [2, first.gate],
    [4, last.gate],
  ]);
  const slow = sayNow(phone, "t", "slow", agentOf(counter(6, (n) => gates.get(n))));
  for (const one of [laptop, tablet]) {
    await eventually(async () => expect(await tree(one, "t")).toMatchObject({ slow: { status: "running" } }));
  }
  // Nobody hears from the phone any more, and somebody goes on from what it has said.
  phone.space.connect(false);
  time.pass();
  for (const one of [laptop, tablet]) {
    await eventually(async () => expect(await tree(one, "t")).toMatchObject({ slow: { status: "broken" } }));
  }
  await say(laptop, "t", "next", agentOf(counter(2)));
  await eventually(async () => expect(await tree(tablet, "t")).toMatchObject({ next: { status: "finished" } }));
  // It is back, in the middle of its run, while another one goes on.
  phone.space.connect(true);
  await inStep(phone);
  const before = server.last;
  first.letOn();
  await eventually(() => expect(server.last).toBeGreaterThan(before));
  const second = gated();
  const live = say(laptop, "t", "live", agentOf(counter(4, (n) => (n === 2 ? second.gate : undefined))));
  await eventually(async () => expect(await tree(tablet, "t")).toMatchObject({ live: { status: "running" } }));
  last.letOn();
  await slow;
  await eventually(() => expect(ended(server)).toBe(2));
  await passes(50);
  second.letOn();
  await live;
  await eventually(async () => expect(await tree(tablet, "t")).toMatchObject({ live: { status: "finished" } }));
  await eventually(async () => expect(await tree(tablet, "t")).toMatchObject({ slow: { status: "finished" } }));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(tablet, "t")));
  await eventually(async () => expect(await tree(phone, "t")).toEqual(await tree(tablet, "t")));
});

test("what could not be saved once is saved later, and the place in the space does not go past it before", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const phone = device(server, "Phone");
  const laptop = makeDevice(server, "Laptop", { dbName });
  await inStep(phone, laptop);
  await say(phone, "t", "first", agentOf(counter(1)));
  await eventually(async () => expect((await laptop.database.get("place"))?.seq).toBe(server.last));
  const { database } = laptop;
  const { put } = database;
  const failing = vi.spyOn(database, "put").mockImplementation(async (records, place) => {
    if (records.length > 0) throw new Error("The disk is full");
    return put.call(database, records, place);
  });
  await say(phone, "t", "second", agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ second: { status: "finished" } }));
  const failures = failing.mock.calls.length;
  await eventually(() => expect(failing.mock.calls.length).toBeGreaterThan(failures));
  failing.mockRestore();
  await say(phone, "elsewhere", "third", agentOf(counter(1)));
  await eventually(async () => expect((await laptop.database.get("place"))?.seq).toBe(server.last));
  await laptop.close();
  const again = device(server, "Laptop", { dbName });
  await inStep(again);
  await say(again, "t", "last", agentOf(counter(1)));
  await eventually(async () => expect(await tree(phone, "t")).toHaveProperty("last"));
});

test("the place in the space is saved up to the last entry, also where that came while the one before was being saved", async () => {
  const server = new MemoryServer();
  class SlowToRead extends MemorySpace {
    override async *read(...from: Parameters<MemorySpace["read"]>): AsyncGenerator<SpaceFrame, void> {
      for await (const frame of super.read(...from)) {
        await passes(50);
        yield frame;
      }
    }
  }
  const phone = deviceOn(new SlowToRead(server), "Phone");
  onTestFinished(phone.close);
  await inStep(phone);
  const { database } = phone;
  const { put } = database;
  vi.spyOn(database, "put").mockImplementation(async (records, place) => {
    if (records.length === 0) await passes(200);
    return put.call(database, records, place);
  });
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(async () => expect((await database.get("place"))?.seq).toBe(server.last));
});

test("a run whose id another device uses meanwhile is sent once that one has ended, and not over and over before", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await inStep(phone, laptop);
  const { gate, letOn } = gated();
  laptop.space.connect(false);
  await say(laptop, "t", "daily", agentOf(counter(2)));
  const run = say(phone, "t", "daily", agentOf(counter(4, (n) => (n === 2 ? gate : undefined))));
  await eventually(() => expect(types(server)).toContain("events"));
  laptop.space.connect(true);
  await inStep(laptop);
  await passes(50);
  const before = types(server).length;
  await passes(100);
  expect(types(server)).toHaveLength(before);
  letOn();
  await run;
  await vi.waitFor(() => Promise.resolve().then(() => say(laptop, "t", "after", agentOf(counter(1)))));
  await eventually(async () => expect(await tree(phone, "t")).toHaveProperty("after"));
});

test("a thread that cannot be read again now holds up no other thread", async () => {
  const server = new MemoryServer();
  const [phone, tablet] = [device(server, "Phone"), device(server, "Tablet", { keep: "opened" })];
  await say(phone, "t", "r1", agentOf(counter(1)));
  await say(phone, "other", "o1", agentOf(counter(1)));
  await eventually(() => expect(ended(server)).toBe(2));
  await inStep(tablet);
  await eventually(async () => expect(await tree(tablet, "other")).toHaveProperty("o1"));
  const { gate, letOn } = gated();
  const { space } = tablet;
  const { entries } = space;
  vi.spyOn(space, "entries").mockImplementation(async function* (...of) {
    await gate;
    yield* entries.apply(space, of);
  });
  const opened = tree(tablet, "t");
  await passes(20);
  await say(phone, "t", "r2", agentOf(counter(1)));
  await say(phone, "other", "o2", agentOf(counter(1)));
  await eventually(async () => expect(await tree(tablet, "other")).toHaveProperty("o2"));
  await say(tablet, "other", "o3", agentOf(counter(1)));
  await eventually(async () => expect(await tree(phone, "other")).toHaveProperty("o3"));
  letOn();
  expect(await opened).toHaveProperty("r1");
  await eventually(async () => expect(await tree(tablet, "t")).toEqual(await tree(phone, "t")));
});

test("an entry that is being taken when the thread is read again loses nothing of what stands before it", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await inStep(phone, laptop);
  await say(phone, "t", "first", agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ first: { status: "finished" } }));
  const [unwritten, untaken, unread] = [gated(), gated(), gated()];
  const { store, space } = laptop;
  const { head, runNamed } = store;
  const { entries } = space;
  const writing = vi.spyOn(store, "head").mockImplementation(async (threadId) => {
    await unwritten.gate;
    return head.call(store, threadId);
  });
  const taking = vi.spyOn(store, "runNamed");
  const reading = vi.spyOn(space, "entries").mockImplementation(async function* (...of) {
    await unread.gate;
    yield* entries.apply(space, of);
  });
  // What others add to a thread before it is deleted here, and nobody has seen, brings all of it back.
  await say(phone, "t", "second", agentOf(counter(1)));
  await eventually(() => expect(writing).toHaveBeenCalled());
  let asked = 0;
  taking.mockImplementation(async (threadId, run) => {
    if (run.runId === "third" && ++asked === 1) await untaken.gate;
    return runNamed.call(store, threadId, run);
  });
  await say(phone, "t", "third", agentOf(counter(1)));
  await eventually(() => expect(asked).toBe(1));
  writing.mockRestore();
  await laptop.runner.deleteThread("t");
  unwritten.letOn();
  // Without the mend it is being read by now.
  await passes(50);
  untaken.letOn();
  await eventually(() => expect(reading).toHaveBeenCalled());
  await passes(50);
  unread.letOn();
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  expect(Object.keys(await tree(laptop, "t")).sort()).toEqual(["first", "second", "third"]);
});

test("a run that cannot be written down here keeps no later one from the log", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "finished" } }));
  laptop.space.connect(false);
  const refused = new RunnerError("invalid-input", { field: "chunks" });
  vi.spyOn(laptop.store, "placeRun").mockRejectedValueOnce(refused).mockRejectedValueOnce(refused);
  for (const runId of ["r2", "r3", "r4"]) await say(phone, "t", runId, agentOf(counter(1)));
  await eventually(() => expect(ended(server)).toBe(4));
  laptop.space.connect(true);
  await eventually(async () =>
    expect(await tree(laptop, "t")).toMatchObject({ r4: { prev: "r1", status: "finished" } }),
  );
  await say(laptop, "t", "r5", agentOf(counter(1)));
  await eventually(async () => expect(await tree(phone, "t")).toHaveProperty("r5"));
});
