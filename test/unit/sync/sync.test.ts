import { deleteDB } from "idb";
import { firstValueFrom, Observable } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { invalidInput } from "../../../src/run/errors.js";
import { plainCodec, type PayloadCodec } from "../../../src/storage/codec.js";
import { decodeMessage, encodeMessage } from "../../../src/sync/messages.js";
import { SyncDatabase } from "../../../src/sync/sync-database.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { NO_ENTRIES } from "../../../src/sync/thread-state.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  fastClock,
  freshDb,
  gated,
  inputOf,
  makeRunner,
  rawAgent,
  silent,
  user,
} from "../runner/kit.js";
import {
  BEGINS,
  device,
  ended,
  inStep,
  lineOf,
  makeDevice,
  MemoryServer,
  minutes,
  passes,
  say,
  sayOffline,
  sayNow,
  shown,
  tree,
  types,
  type Device,
} from "./kit.js";

const eventually = (check: () => Promise<void> | void) => vi.waitFor(check, { timeout: 60_000, interval: 5 });

/** Two devices in step. */
async function pair() {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await inStep(phone, laptop);
  return { server, phone, laptop };
}

/** Two devices whose thread `t` has one run. */
async function bothHave(runId: string) {
  const { server, phone, laptop } = await pair();
  await say(phone, "t", runId, agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  return { server, phone, laptop };
}

test("a run on one device is on the other, the same in every event", async () => {
  const { phone, laptop } = await pair();
  await say(phone, "t", "r1", agentOf(counter(20)));
  await eventually(async () => {
    expect(await laptop.runner.listRuns("t")).toMatchObject([{ runId: "r1", status: "finished" }]);
  });
  expect(await shown(laptop, "t")).toEqual(await shown(phone, "t"));
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
  expect(await tree(phone, "t")).toEqual(await tree(laptop, "t"));
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
  expect(await shown(laptop, "t")).toEqual(await shown(phone, "t"));
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
  expect(await tree(laptop, "t")).toEqual(await tree(phone, "t"));
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
  expect(await tree(laptop, "t")).toEqual(await tree(phone, "t"));
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
  expect(await tree(laptop, "t")).toEqual(await tree(again, "t"));
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

test("a server that lost its disk gets everything again", async () => {
  const { server, phone, laptop } = await pair();
  await say(phone, "t", "r1", agentOf(counter(1)));
  await say(phone, "t2", "r2", agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t2")).toEqual(await tree(phone, "t2")));
  server.lose();
  const tablet = device(server, "Tablet");
  await eventually(async () => {
    expect(await tree(tablet, "t")).toEqual(await tree(phone, "t"));
    expect(await tree(tablet, "t2")).toEqual(await tree(phone, "t2"));
  });
});

test("a run whose ids are longer than anybody expects arrives, and once", async () => {
  const { server, phone, laptop } = await pair();
  // That of its message, and what is in it.
  await say(phone, "t", "r1", agentOf(counter(1)), [user("long ".repeat(100_000))]);
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r1: { prev: null, status: "finished" } }));
  expect(await shown(laptop, "t")).toEqual(await shown(phone, "t"));
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
  expect(await shown(laptop, "t")).toEqual(await shown(phone, "t"));
});

test("answers of the server that are lost double nothing", async () => {
  const server = new MemoryServer();
  let lost = 0;
  const phone = device(server, "Phone", { faults: { loseAnswer: () => ++lost % 2 === 1 } });
  const laptop = device(server, "Laptop");
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(50)));
  await say(phone, "t", "r2", agentOf(counter(50)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  expect(await shown(laptop, "t")).toEqual(await shown(phone, "t"));
});

test.each(["run", "end"])("requests that are lost while the device is in step are made again (%s)", async (type) => {
  const server = new MemoryServer();
  let lost = 0;
  const loseRequest = (body: Uint8Array): boolean => {
    const message = decodeMessage(body);
    return typeof message === "object" && message.type === type && ++lost <= 8;
  };
  const phone = device(server, "Phone", { clock: fastClock(20), faults: { loseRequest } });
  const laptop = device(server, "Laptop", { clock: fastClock(20) });
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(5)));
  // Nobody does anything more.
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r1: { prev: null, status: "finished" } }));
  expect(lost).toBe(9);
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

test("a claim that is lost while the device is in step is made again: the run does not start without one", async () => {
  const server = new MemoryServer();
  let lost = 0;
  const loseRequest = (body: Uint8Array): boolean => {
    const message = decodeMessage(body);
    return typeof message === "object" && message.type === "claim" && lost++ === 0;
  };
  const [phone, laptop] = [device(server, "Phone", { faults: { loseRequest } }), device(server, "Laptop")];
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1"]));
  expect(lost).toBe(2);
  expect(types(server)[0]).toBe("claim");
});

test("an entry that is read before its writer has the answer is not taken for lost", async () => {
  const server = new MemoryServer();
  for (let late = 0; late < 12; late++) {
    const phone = device(server, `Phone ${late}`, { faults: { lateAnswer: () => passes(late) } });
    await inStep(phone);
    await say(phone, `t${late}`, "r1", agentOf(counter(5)));
    await say(phone, `t${late}`, "r2", agentOf(counter(5)));
    await eventually(() => expect(ended(server)).toBe(2 * (late + 1)));
    expect(phone.said).toEqual([]);
  }
});

test("no device sends a run twice to servers that lost their disk, whoever else has it", async () => {
  for (let late = 0; late < 12; late++) {
    const server = new MemoryServer();
    const phone = device(server, "Phone");
    const laptop = device(server, "Laptop", { faults: { lateAnswer: () => passes(late) } });
    await inStep(phone, laptop);
    await say(laptop, "t", "r1", agentOf(counter(1)));
    await eventually(async () => expect(await tree(phone, "t")).toEqual(await tree(laptop, "t")));
    server.lose();
    // The thread is busy while the run is sent again.
    await eventually(async () => void (await say(phone, "t", "r2", agentOf(counter(1)))));
    await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1", "r2"]));
    const sent = server.entries.flatMap(({ body }) => {
      const message = decodeMessage(body);
      return typeof message === "object" && message.type === "run" ? `${message.device.name} ${message.runId}` : [];
    });
    expect(sent).toEqual([...new Set(sent)]);
    await phone.close();
    await laptop.close();
  }
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

test("a device that is not heard of any more leaves its run broken; when it is back, the run goes on", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone");
  const laptop = device(server, "Laptop", { clock: fastClock(50) });
  await inStep(phone, laptop);
  const { gate, letOn } = gated();
  const run = say(phone, "t", "r1", agentOf(counter(6, (step) => (step === 3 ? gate : undefined))));
  await eventually(async () => expect(await textOn(laptop)).toBe(counted(3)));
  phone.space.connect(false);
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r1: { prev: null, status: "broken" } }));
  expect(await textOn(laptop)).toBe(counted(3));
  // Nobody waits for it.
  await say(laptop, "t", "r2", agentOf(counter(2)));
  letOn();
  await run;
  phone.space.connect(true);
  await eventually(async () => {
    expect(await tree(laptop, "t")).toEqual({
      r1: { prev: null, status: "finished" },
      r2: { prev: "r1", status: "finished" },
    });
    expect(await tree(phone, "t")).toEqual(await tree(laptop, "t"));
  });
  expect(await shown(phone, "t")).toEqual(await shown(laptop, "t"));
  expect((await shown(laptop, "t")).messages[1]).toMatchObject({ content: counted(6) });
});

/** The first answer, as a reader sees it now. */
async function textOn({ runner }: Device): Promise<unknown> {
  return (await runner.getThreadMessages("t"))[1]?.content;
}

test("a device whose database was deleted gets everything back, its own runs too", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const phone = device(server, "Phone", { dbName });
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(3)));
  await eventually(() => expect(ended(server)).toBe(1));
  await phone.close();
  await deleteDB(dbName);
  const again = device(server, "Phone", { dbName });
  await eventually(async () => expect(await tree(again, "t")).toEqual({ r1: { prev: null, status: "finished" } }));
  expect((await shown(again, "t")).messages[1]).toMatchObject({ content: counted(3) });
  await say(again, "t", "r2", agentOf(counter(2)));
  const laptop = device(server, "Laptop");
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(again, "t")));
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
  expect(await shown(phone, "t")).toEqual(await shown(laptop, "t"));
});

test("a server that lost its last entries gets them again", async () => {
  const { server, phone, laptop } = await pair();
  await say(phone, "t", "r1", agentOf(counter(1)));
  await say(phone, "t", "r2", agentOf(counter(2)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  for (const { space } of [phone, laptop]) space.connect(false);
  server.entries.splice(-3);
  for (const { space } of [phone, laptop]) space.connect(true);
  // The phone has the thread while it sends its runs again.
  await eventually(() => Promise.resolve().then(async () => void (await say(laptop, "t", "r3", agentOf(counter(3))))));
  const tablet = device(server, "Tablet");
  await eventually(async () => {
    expect(Object.keys(await tree(tablet, "t"))).toEqual(["r1", "r2", "r3"]);
    expect(await tree(phone, "t")).toEqual(await tree(tablet, "t"));
    expect(await tree(laptop, "t")).toEqual(await tree(tablet, "t"));
  });
});

test("a device that falls silent before its first event holds up nothing", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone");
  const { clock, pass } = minutes();
  const laptop = device(server, "Laptop", { clock });
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  const { gate, letOn } = gated();
  const waits = rawAgent(
    (input) =>
      new Observable((subscriber) => {
        void gate.then(() => agentOf(counter(2)).run(input).subscribe(subscriber));
      }),
  );
  const run = say(phone, "t", "r2", waits);
  await eventually(() => expect(types(server).filter((type) => type === "run")).toHaveLength(2));
  // Its run holds the thread, though nothing of it is here.
  await eventually(async () => {
    const refused = sayNow(laptop, "t", "early", agentOf(counter(1)));
    await expect(refused).rejects.toMatchObject({ code: "thread-busy", details: { device: "Phone" } });
  });
  phone.space.connect(false);
  pass();
  await eventually(async () => {
    await Promise.resolve().then(() => say(laptop, "t", "r3", agentOf(counter(3))));
  });
  // What others add is written down as before.
  const tablet = device(server, "Tablet", { clock: fastClock(50) });
  await eventually(async () => expect(Object.keys(await tree(tablet, "t"))).toContain("r3"));
  await say(tablet, "t", "r4", agentOf(counter(1)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toContain("r4"));
  letOn();
  await run;
  phone.space.connect(true);
  await eventually(async () => {
    expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1", "r2", "r3", "r4"]);
    expect(await tree(phone, "t")).toEqual(await tree(laptop, "t"));
  });
  expect(await shown(phone, "t")).toEqual(await shown(laptop, "t"));
});

test("what a device has of another one that is gone is sent to servers that lost their disk", async () => {
  const { server, phone } = await bothHave("r1");
  await phone.close();
  server.lose();
  const tablet = device(server, "Tablet");
  await eventually(async () => expect(await tree(tablet, "t")).toEqual({ r1: { prev: null, status: "finished" } }));
});

test("a run whose device is back streams again, in place of the broken one", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone");
  const { clock, pass } = minutes();
  const laptop = device(server, "Laptop", { clock });
  await inStep(phone, laptop);
  const [first, second] = [gated(), gated()];
  const gate = (step: number) => (step === 2 ? first.gate : step === 4 ? second.gate : undefined);
  const run = say(phone, "t", "r1", agentOf(counter(6, gate)));
  await eventually(async () => expect(await textOn(laptop)).toBe(counted(2)));
  phone.space.connect(false);
  pass();
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r1: { prev: null, status: "broken" } }));
  first.letOn();
  phone.space.connect(true);
  await eventually(async () => expect(await textOn(laptop)).toBe(counted(4)));
  expect(await laptop.runner.isRunning({ threadId: "t" })).toBe(true);
  second.letOn();
  await run;
  await eventually(async () => expect(await tree(laptop, "t")).toEqual({ r1: { prev: null, status: "finished" } }));
  expect(await shown(laptop, "t")).toEqual(await shown(phone, "t"));
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

test.each(["a run that its device begins to send, and abandons", "an entry that says nothing"])(
  "where the servers have lost everything, a device sends what it has of others behind %s",
  async (what) => {
    const server = new MemoryServer();
    const laptop = device(server, "Laptop");
    const phone = makeDevice(server, "Phone");
    await inStep(laptop, phone);
    await say(phone, "t", "p1", agentOf(counter(2)));
    await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ p1: { status: "finished" } }));
    const [run] = server.entries.flatMap(({ body }) => {
      const message = decodeMessage(body);
      return typeof message === "object" && message.type === "run" ? [message] : [];
    });
    await phone.close();
    laptop.space.connect(false);
    server.lose();
    const key = await keyOfThread("t");
    if (what === "an entry that says nothing") server.add(key, new TextEncoder().encode("nothing"), 0, "x");
    else {
      server.add(key, encodeMessage(run!), 0, "x");
      server.add(key, encodeMessage({ type: "abandon", threadId: "t", runId: "p1", device: run!.device }), 1, "y");
    }
    laptop.space.connect(true);
    const tablet = device(server, "Tablet");
    await eventually(async () => expect(await tree(tablet, "t")).toEqual({ p1: { prev: null, status: "finished" } }));
    expect(await shown(tablet, "t")).toEqual(await shown(laptop, "t"));
  },
);

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
