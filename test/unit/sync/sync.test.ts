import { firstValueFrom } from "rxjs";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { plainCodec, type PayloadCodec } from "../../../src/storage/codec.js";
import { encodeMessage } from "../../../src/sync/messages.js";
import { SyncDatabase } from "../../../src/sync/sync-database.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { NO_ENTRIES } from "../../../src/sync/thread-state.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  freshDb,
  gated,
  inputOf,
  makeRunner,
  silent,
  user,
} from "../runner/kit.js";
import {
  BEGINS,
  bothHave,
  device,
  ended,
  eventually,
  inStep,
  MemoryServer,
  pair,
  passes,
  say,
  sayNow,
  shown,
  textOn,
  tree,
  types,
  type Device,
  same,
} from "./kit.js";

test("a run on one device is on the other, the same in every event", async () => {
  const { phone, laptop } = await pair();
  await say(phone, "t", "r1", agentOf(counter(20)));
  await eventually(async () => {
    expect(await laptop.runner.listRuns("t")).toMatchObject([{ runId: "r1", status: "finished" }]);
  });
  await same("t", laptop, phone);
  expect((await shown(laptop, "t")).messages).toEqual([
    user("r1-u"),
    { id: "r1-a", role: "assistant", content: counted(20) },
  ]);
});

test("it streams: what one device shows, the other shows before the end", async () => {
  const { phone, laptop } = await pair();
  const { gate, letOn } = gated();
  const run = say(phone, "t", "r1", agentOf(counter(10, (step) => (step === 5 ? gate : undefined))));
  await eventually(async () => {
    expect(await laptop.runner.isRunning({ threadId: "t" })).toBe(true);
    const { threadId, runId, status } = (await laptop.runner.listRuns("t"))[0] ?? {};
    expect({ threadId, runId, status }).toMatchObject({ runId: "r1", status: "running" });
  });
  const events: string[] = [];
  const following = laptop.runner.connect({ threadId: "t" }).subscribe((event) => events.push(event.type));
  await eventually(() => expect(events).toContain("TEXT_MESSAGE_START"));
  letOn();
  await run;
  await eventually(() => expect(events.at(-1)).toBe("RUN_FINISHED"));
  following.unsubscribe();
});

test("both go on offline: both branches stay, and all devices show the one that came first", async () => {
  const { server, phone, laptop } = await pair();
  await say(phone, "t", "r1", agentOf(counter(3)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  phone.space.connect(false);
  laptop.space.connect(false);
  await say(phone, "t", "p1", agentOf(counter(4)));
  await say(phone, "t", "p2", agentOf(counter(5)));
  await say(laptop, "t", "l1", agentOf(counter(6)));
  laptop.space.connect(true);
  await inStep(laptop);
  await eventually(() => expect(ended(server)).toBe(2));
  phone.space.connect(true);
  await inStep(phone);
  await eventually(async () => {
    expect(await tree(laptop, "t")).toEqual({
      r1: { prev: null, status: "finished" },
      l1: { prev: "r1", status: "finished" },
      p1: { prev: "r1", status: "finished" },
      p2: { prev: "p1", status: "finished" },
    });
    expect(await tree(phone, "t")).toEqual(await tree(laptop, "t"));
    expect(await shown(phone, "t")).toEqual(await shown(laptop, "t"));
  });
  expect((await shown(phone, "t")).messages.map(({ id }) => id)).toEqual(["r1-u", "r1-a", "l1-u", "l1-a"]);
  // And on they go, from there.
  await say(phone, "t", "p3", agentOf(counter(2)));
  await eventually(async () => expect(await shown(laptop, "t")).toEqual(await shown(phone, "t")));
});

test("a second device is told that the thread is busy, and by which device", async () => {
  const { phone, laptop } = await pair();
  const { gate, letOn } = gated();
  const run = say(phone, "t", "r1", agentOf(counter(4, (step) => (step === 2 ? gate : undefined))));
  await eventually(async () => expect(await laptop.runner.isRunning({ threadId: "t" })).toBe(true));
  await expect(sayNow(laptop, "t", "r2", agentOf(counter(1)))).rejects.toMatchObject({
    code: "thread-busy",
    details: { runId: "r1", device: "Phone" },
  });
  letOn();
  await run;
  await eventually(async () => expect(await laptop.runner.isRunning({ threadId: "t" })).toBe(false));
  await say(laptop, "t", "r2", agentOf(counter(1)));
  await eventually(async () => expect(await tree(phone, "t")).toEqual(await tree(laptop, "t")));
});

test("two devices start at once: one runs", async () => {
  const server = new MemoryServer();
  const devices = [device(server, "A"), device(server, "B"), device(server, "C")];
  await inStep(...devices);
  for (let round = 0; round < 10; round++) {
    const threadId = `t${round}`;
    const results = await Promise.allSettled(
      devices.map((one) => say(one, threadId, `${one.name}-${round}`, agentOf(counter(3)))),
    );
    const won = results.filter(({ status }) => status === "fulfilled");
    expect(won.length).toBeGreaterThanOrEqual(1);
    await eventually(async () => {
      const trees = await Promise.all(devices.map((one) => tree(one, threadId)));
      expect(Object.keys(trees[0]!)).toHaveLength(won.length);
      expect(trees[1]).toEqual(trees[0]);
      expect(trees[2]).toEqual(trees[0]);
    });
    // Whoever ran later continued what was there.
    const prevs = Object.values(await tree(devices[0]!, threadId)).map((run) => (run as { prev: unknown }).prev);
    expect(new Set(prevs).size).toBe(prevs.length);
  }
});

test("a stop on one device ends the run on the other", async () => {
  const { phone, laptop } = await pair();
  const run = say(phone, "t", "r1", agentOf(silent));
  await eventually(async () => expect(await laptop.runner.isRunning({ threadId: "t" })).toBe(true));
  expect(await laptop.runner.stop({ threadId: "t" })).toBe(true);
  await run;
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r1: { prev: null, status: "stopped" } }));
  await same("t", phone, laptop);
});

test("a title, an archived and a pinned thread are the same everywhere; the last change counts", async () => {
  const { server, phone, laptop } = await pair();
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(async () => expect(await laptop.runner.getThread("t")).toBeDefined());
  await laptop.runner.updateThread("t", { title: "Named", pinned: true });
  await eventually(async () =>
    expect(await phone.runner.getThread("t")).toMatchObject({ title: "Named", pinned: true }),
  );
  phone.space.connect(false);
  await phone.runner.updateThread("t", { title: "Offline" });
  await laptop.runner.updateThread("t", { title: "Online", archived: true });
  await eventually(() => expect(types(server).filter((type) => type === "thread")).toHaveLength(2));
  phone.space.connect(true);
  for (const { runner } of [phone, laptop]) {
    await eventually(async () =>
      expect(await runner.getThread("t")).toMatchObject({ title: "Offline", archived: true }),
    );
  }
});

test("a run whose ids are longer than anybody expects arrives, and once", async () => {
  const { server, phone, laptop } = await pair();
  // That of its message, and what is in it.
  await say(phone, "t", "r1", agentOf(counter(1)), [user("long ".repeat(100_000))]);
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r1: { prev: null, status: "finished" } }));
  await same("t", laptop, phone);
  expect(server.entries.length).toBeLessThan(10);
});

test("a new device gets what is there", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone");
  await inStep(phone);
  for (let n = 0; n < 5; n++) await say(phone, `t${n % 2}`, `r${n}`, agentOf(counter(30)));
  const laptop = device(server, "Laptop");
  for (const threadId of ["t0", "t1"]) {
    await eventually(async () => expect(await tree(laptop, threadId)).toEqual(await tree(phone, threadId)));
    expect(await shown(laptop, threadId)).toEqual(await shown(phone, threadId));
  }
});

test("what was there before the device joined is sent", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const alone = makeRunner({ dbName });
  await collect(alone.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", "r0") }));
  await alone.close();
  const phone = device(server, "Phone", { dbName });
  const laptop = device(server, "Laptop");
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r0: { prev: null, status: "finished" } }));
  await same("t", laptop, phone);
});

test("a claim stands until its run is in the space: nobody else starts in between (L1)", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone");
  await inStep(phone);
  for (const [n, runId] of ["r1", "r2"].entries()) {
    await say(phone, "t", runId, agentOf(counter(1)));
    await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(n + 1));
  }
  const once = ["claim", "run", "end"];
  expect(types(server).filter((type) => type !== "events")).toEqual([...once, ...once]);
});

test("a run that this device takes over from one that sends a copy is done with, and the thread gets its title", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone");
  await inStep(phone);
  phone.space.connect(false);
  await say(phone, "t", "r1", agentOf(counter(1)));
  const its = { threadId: "t", device: { id: "other", name: "Other" }, runId: "r1", title: "the title of the copy" };
  const copy = encodeMessage({ ...BEGINS, ...its });
  server.add(await keyOfThread("t"), copy, 0, "copy");
  phone.space.connect(true);
  await eventually(() => expect(ended(server)).toBe(1));
  await eventually(async () =>
    expect(await phone.runner.getThread("t")).toMatchObject({ title: "the title of the copy" }),
  );
});

test("what is saved of a thread does not come after everything was forgotten", async () => {
  const slow: PayloadCodec = {
    encode: async (value) => {
      await passes(5);
      return value;
    },
    decode: plainCodec.decode,
  };
  const database = new SyncDatabase(freshDb(), systemClock, slow);
  onTestFinished(() => database.close());
  await database.prepare();
  const saving = database.put([{ key: "k", threadId: "t", state: { ...NO_ENTRIES, last: 7 }, sent: 0 }]);
  await Promise.all([database.forget(true), saving]);
  expect(await database.thread("k")).toBeUndefined();
});

test("the other branch is taken up, on all devices", async () => {
  const { phone, laptop } = await bothHave("r1");
  phone.space.connect(false);
  await say(phone, "t", "p1", agentOf(counter(2)));
  await say(laptop, "t", "l1", agentOf(counter(3)));
  phone.space.connect(true);
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  const ids = async ({ runner }: Device) => (await runner.getThreadMessages("t")).map(({ id }) => id);
  await eventually(async () => expect(await ids(phone)).toEqual(["r1-u", "r1-a", "l1-u", "l1-a"]));
  // Whose it is, people are told.
  expect(await laptop.runner.getRun("p1", { threadId: "t" })).toMatchObject({ device: { name: "Phone" } });
  await laptop.runner.activateRun("t", "p1");
  for (const one of [laptop, phone]) {
    await eventually(async () => expect(await ids(one)).toEqual(["r1-u", "r1-a", "p1-u", "p1-a"]));
  }
  await expect(laptop.runner.activateRun("t", "nothing")).rejects.toMatchObject({ code: "invalid-input" });
  await expect(laptop.runner.activateRun("nothing", "p1")).rejects.toMatchObject({ code: "unknown-thread" });
});

test("what a newer version says stops the device: it says so, and sends nothing behind it", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone");
  await inStep(phone);
  const body = new TextEncoder().encode(
    JSON.stringify({ v: 99, type: "claim", threadId: "t", runId: "r", device: {} }),
  );
  server.add(await keyOfThread("t"), body, 0, "newer");
  await eventually(async () => {
    expect(await firstValueFrom(phone.sync.status$)).toMatchObject({ is: "refused", isCurrent: false });
  });
  await say(phone, "t", "r1", agentOf(counter(1)));
  expect(server.entries).toHaveLength(1);
});

test("entries that are no messages, or of another thread, are passed over", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone");
  await inStep(phone);
  const key = await keyOfThread("t");
  const bodies = [
    "",
    "{",
    "null",
    '{"v":1}',
    '{"v":1,"type":"__proto__","threadId":"t","device":{"id":"x","name":"x"}}',
  ];
  const other = { v: 1, type: "deleted", knew: 0, threadId: "u", device: { id: "x", name: "x" } };
  for (const text of [...bodies, JSON.stringify(other)]) {
    server.add(key, new TextEncoder().encode(text), server.entries.length, `entry ${server.entries.length}`);
  }
  await say(phone, "t", "r1", agentOf(counter(1)));
  const laptop = device(server, "Laptop");
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r1: { prev: null, status: "finished" } }));
});

test("to another host of the device, a run that is written down is live: its thread is busy, and it is not broken", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const phone = device(server, "Phone");
  const laptop = device(server, "Laptop", { dbName });
  await inStep(phone, laptop);
  const { gate, letOn } = gated();
  const run = say(phone, "t", "r1", agentOf(counter(4, (step) => (step === 2 ? gate : undefined))));
  await eventually(async () => expect(await textOn(laptop)).toBe(counted(2)));
  const beside = makeRunner({ dbName });
  const second = collect(beside.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r2") }));
  await expect(second).rejects.toMatchObject({ code: "thread-busy", details: { runId: "r1", device: "Phone" } });
  expect(await tree(laptop, "t")).toEqual({ r1: { prev: null, status: "running" } });
  letOn();
  await run;
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r1: { prev: null, status: "finished" } }));
});

test("an entry that says nothing is known after a restart, so that what is added comes behind it", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  let phone = device(server, "Phone", { dbName });
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(() => expect(ended(server)).toBe(1));
  server.add(await keyOfThread("t"), new Uint8Array(), server.entries.length, "nothing");
  // Its end is saved, and with it that everything before was read.
  await say(phone, "u", "r2", agentOf(counter(1)));
  await eventually(() => expect(ended(server)).toBe(2));
  await phone.close();
  phone = device(server, "Phone", { dbName });
  await inStep(phone);
  await say(phone, "t", "r3", agentOf(counter(1)));
  const laptop = device(server, "Laptop");
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1", "r3"]));
});
