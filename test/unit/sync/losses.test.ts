import { deleteDB } from "idb";
import { Observable } from "rxjs";
import { expect, test } from "vitest";
import { decodeMessage, encodeMessage } from "../../../src/sync/messages.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { agentOf, counted, counter, fastClock, freshDb, gated, rawAgent } from "../runner/kit.js";
import {
  bothHave,
  device,
  ended,
  eventually,
  inStep,
  makeDevice,
  MemoryServer,
  minutes,
  pair,
  passes,
  say,
  sayNow,
  shown,
  textOn,
  tree,
  types,
  same,
} from "./kit.js";

/*
 * Servers that lose what they had, and devices that lose what they had, fall silent or come back.
 */

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

test("answers of the server that are lost double nothing", async () => {
  const server = new MemoryServer();
  let lost = 0;
  const phone = device(server, "Phone", { faults: { loseAnswer: () => ++lost % 2 === 1 } });
  const laptop = device(server, "Laptop");
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(50)));
  await say(phone, "t", "r2", agentOf(counter(50)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  await same("t", laptop, phone);
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
  await same("t", phone, laptop);
  expect((await shown(laptop, "t")).messages[1]).toMatchObject({ content: counted(6) });
});

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
  await same("t", phone, laptop);
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
  await same("t", laptop, phone);
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
