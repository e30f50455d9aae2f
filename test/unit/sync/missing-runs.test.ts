import { expect, test, vi } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { RunnerError } from "../../../src/run/errors.js";
import { EventType } from "@ag-ui/client";
import { decodeMessage, encodeMessage, type SentChunk, type SpaceMessage } from "../../../src/sync/messages.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { agentOf, counter, fastClock, freshDb, gated } from "../runner/kit.js";
import {
  BEGINS,
  bothHave,
  device,
  eventually,
  inStep,
  MemoryServer,
  pair,
  same,
  say,
  sayNow,
  shown,
  tree,
  types,
  type Device,
} from "./kit.js";

/*
 * A run of which others have nothing, and what continues it.
 */

const lines = ({ messages }: Awaited<ReturnType<typeof shown>>): readonly string[] => messages.map(({ id }) => id);

test.for(["run", "chunks"] as const)(
  "what continues a run that cannot be read here (its %s) is on all devices",
  async (name) => {
    const { phone, laptop } = await bothHave("r1");
    phone.space.connect(false);
    await say(phone, "t", "r2", agentOf(counter(1)));
    await say(phone, "t", "r3", agentOf(counter(1)));
    const read = phone.store[name].bind(phone.store) as (...of: unknown[]) => Promise<never>;
    const failing = vi
      .spyOn(phone.store, name)
      .mockImplementation(async (threadId: string, runIndex: number, ...more: unknown[]) => {
        if (runIndex === 1) throw new RunnerError("corrupt-record", { threadId, store: "runs" });
        return read(threadId, runIndex, ...more);
      });
    phone.space.connect(true);
    const behind = { r1: { prev: null, status: "finished" }, r3: { prev: "r1", status: "finished" } };
    await eventually(async () => expect(await tree(laptop, "t")).toEqual(behind));
    await say(phone, "t", "r4", agentOf(counter(1)));
    await eventually(async () =>
      expect(lines(await shown(laptop, "t"))).toEqual(["r1-u", "r1-a", "r3-u", "r3-a", "r4-u", "r4-a"]),
    );
    // Nobody is taken away from where they are.
    failing.mockRestore();
    expect((await phone.store.head("t"))?.activeRunIndex).toBe(3);
  },
);

/** All of a run of which nobody says anything. */
function wholeOf(runId: string): SentChunk {
  const entries = [EventType.RUN_STARTED, EventType.RUN_FINISHED].map((type) => ({
    event: { type, threadId: "t", runId },
  }));
  return { firstSeq: 0, count: 2, at: 1, times: [2, 0], entries };
}

/** Two devices that have a run, and what a third one, which has left, is to add: `gone` says of whom. */
async function withOneGone() {
  const devices = await bothHave("r1");
  const { server } = devices;
  const tablet = device(server, "Tablet");
  await inStep(tablet);
  const gone = { threadId: "t", device: { id: await tablet.database.device("none"), name: "Tablet" } };
  await tablet.close();
  const key = await keyOfThread("t");
  const add = (message: SpaceMessage) =>
    server.add(key, encodeMessage(message), server.last, `entry ${server.entries.length}`);
  return { ...devices, gone, key, add };
}

/** Resolves when the device has read all that is there now. */
async function hasRead(reader: Device, server: MemoryServer): Promise<void> {
  const other = device(server, "Other");
  const threadId = `after ${server.last}`;
  await say(other, threadId, "r1", agentOf(counter(1)));
  await eventually(async () => expect(await tree(reader, threadId)).toMatchObject({ r1: { status: "finished" } }));
}

/** Adds entries to the thread, behind its last one. */
async function addAll(server: MemoryServer, entries: readonly { readonly body: Uint8Array }[]): Promise<void> {
  const key = await keyOfThread("t");
  for (const { body } of entries) {
    const last = server.entries.findLast(({ thread }) => thread === key)?.seq ?? 0;
    server.add(key, body, last, `entry ${server.last}`);
  }
}

/** Of which run an entry is. */
function runIdOf(body: Uint8Array): string | undefined {
  const message = decodeMessage(body);
  return typeof message === "object" && "runId" in message ? message.runId : undefined;
}

/** The same entries, but for those of this run. */
async function withoutRun(server: MemoryServer, runId: string): Promise<MemoryServer> {
  const other = new MemoryServer();
  await addAll(
    other,
    server.entries.filter(({ body }) => runIdOf(body) !== runId),
  );
  return other;
}

test("a run whose base nobody has sent waits for nothing, and holds up no deletion", async () => {
  const { server, phone } = await bothHave("r1");
  await say(phone, "t", "r2", agentOf(counter(1)));
  await say(phone, "t", "r3", agentOf(counter(1)));
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(3));
  const other = await withoutRun(server, "r2");
  const [tablet, watch] = [device(other, "Tablet"), device(other, "Watch")];
  const behind = { r1: { prev: null, status: "finished" }, r3: { prev: "r1", status: "finished" } };
  for (const one of [tablet, watch]) await eventually(async () => expect(await tree(one, "t")).toEqual(behind));
  await same("t", tablet, watch);
  await tablet.runner.deleteThread("t");
  await eventually(async () => expect(await tree(watch, "t")).toEqual({}));
});

test("runs that say that they continue each other are written down", async () => {
  const { server, phone, laptop } = await bothHave("r1");
  const liar = { threadId: "t", device: { id: "liar", name: "Liar" } };
  const said = (runId: string, prev: string): readonly SpaceMessage[] => [
    { ...BEGINS, runId, prev, ...liar },
    { type: "end", runId, status: "finished", endedAt: 1, chunk: wholeOf(runId), ...liar },
  ];
  const bodies = [...said("a", "b"), ...said("b", "a")].map((message) => ({ body: encodeMessage(message) }));
  await addAll(server, bodies);
  // Who comes later reads both before it writes one down.
  for (const one of [phone, laptop, device(server, "Late")]) {
    const both = { a: { status: "finished" }, b: { status: "finished" } };
    await eventually(async () => expect(await tree(one, "t")).toMatchObject(both));
  }
});

test("a deletion takes along what waits for runs that nobody sends", async () => {
  const { server, phone } = await bothHave("r1");
  await say(phone, "t", "r2", agentOf(counter(1)));
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(2));
  const other = await withoutRun(server, "r1");
  const tablet = device(other, "Tablet");
  await hasRead(tablet, other);
  const knew = other.entries.findLast(({ body }) => runIdOf(body) === "r2")!.seq;
  const deletion = { type: "deleted", knew, threadId: "t", device: { id: "gone", name: "Gone" } } as const;
  await addAll(other, [{ body: encodeMessage(deletion) }]);
  const { last } = other;
  // Nothing is left to be written down.
  await eventually(async () => expect((await tablet.database.get("place"))?.seq).toBeGreaterThanOrEqual(last));
});

test("the first runs of a thread may come behind what continues them, where the servers have lost them", async () => {
  const { server, phone } = await bothHave("r1");
  await say(phone, "t", "r2", agentOf(counter(1)));
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(2));
  const other = await withoutRun(server, "r1");
  const tablet = device(other, "Tablet");
  await hasRead(tablet, other);
  await addAll(other, (await withoutRun(server, "r2")).entries);
  const both = { r1: { prev: null }, r2: { prev: "r1" } };
  for (const one of [tablet, device(other, "Late")]) {
    await eventually(async () => expect(await tree(one, "t")).toMatchObject(both));
  }
});

test.for(["claim", "run"] as const)(
  "a run that its device only began (its %s) before the servers lost the rest, and that others have, is sent by them",
  async (lastOne) => {
    const { server, phone, laptop: first } = await bothHave("r1");
    const dbName = first.runner.joinDevices().parts.dbName;
    await phone.close();
    await say(first, "t", "r2", agentOf(counter(1)));
    await first.close();
    server.entries = server.entries.slice(0, types(server).indexOf(lastOne) + 1);
    const clock = fastClock(100);
    const [laptop, tablet] = [device(server, "Laptop", { dbName, clock }), device(server, "Tablet", { clock })];
    const both = { r1: { prev: null, status: "finished" }, r2: { prev: "r1", status: "finished" } };
    for (const one of [laptop, tablet]) await eventually(async () => expect(await tree(one, "t")).toEqual(both));
    await same("t", laptop, tablet);
  },
);

test("what was added unseen to a deleted thread waits for the runs that it continues: they are sent again behind it", async () => {
  const { server, phone } = await bothHave("r1");
  const first = server.entries.slice();
  await say(phone, "t", "r2", agentOf(counter(1)));
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(2));
  const second = server.entries.slice(first.length);
  // Nothing is left of what was deleted.
  const other = new MemoryServer();
  const deletion = { type: "deleted", knew: 0, threadId: "t", device: { id: "gone", name: "Gone" } } as const;
  await addAll(other, [{ body: encodeMessage(deletion) }]);
  const fresh = device(other, "Fresh");
  await say(fresh, "t", "n1", agentOf(counter(1)));
  await eventually(() => expect(types(other)).toContain("end"));
  await addAll(other, second);
  const tablet = device(other, "Tablet");
  await hasRead(tablet, other);
  await addAll(other, first);
  const all = { n1: { prev: null }, r1: { prev: null }, r2: { prev: "r1" } };
  for (const one of [fresh, tablet, device(other, "Late")]) {
    await eventually(async () => expect(await tree(one, "t")).toMatchObject(all));
  }
});

test("a run that could not be written down, and a restart, do not keep what continues it", async () => {
  const { server, phone, laptop } = await pair();
  await laptop.close();
  await say(phone, "t", "r1", agentOf(counter(1)));
  await say(phone, "t", "r2", agentOf(counter(1)));
  const dbName = freshDb();
  let tablet = device(server, "Tablet", { dbName });
  const { placeRun } = tablet.store;
  vi.spyOn(tablet.store, "placeRun").mockImplementation(async (run) => {
    if (run.runId === "r2") throw new RunnerError("invalid-input");
    return placeRun.call(tablet.store, run);
  });
  await eventually(async () => expect(tablet.said.join()).toContain("left out"));
  await tablet.sync.close();
  await tablet.close();
  tablet = device(server, "Tablet", { dbName });
  await say(phone, "t", "r3", agentOf(counter(1)));
  await eventually(async () => expect(await tree(tablet, "t")).toMatchObject({ r3: { prev: "r1" } }));
});

test("a branch that has not begun, and whose device is gone, holds up nothing; what comes of it later is there", async () => {
  const { server, phone, laptop, gone, add } = await withOneGone();
  add({ ...BEGINS, runId: "beside", ...gone });
  add({ ...BEGINS, runId: "never", ...gone });
  await say(phone, "t", "r2", agentOf(counter(1)));
  await same("t", phone, laptop);
  const dbName = freshDb();
  const watch = device(server, "Watch", { dbName });
  await same("t", watch, phone);
  const { seq } = server.entries.at(-1)!;
  await eventually(async () => expect((await watch.database.get("place"))?.seq).toBe(seq));
  await watch.close();
  const again = device(server, "Watch", { dbName });
  await inStep(again);
  // Its device has it, after all.
  add({ type: "end", runId: "beside", status: "finished", endedAt: 1, chunk: wholeOf("beside"), ...gone });
  const other = device(server, "Other");
  for (const one of [phone, laptop, again, other]) {
    await eventually(async () => expect(await tree(one, "t")).toMatchObject({ beside: { prev: null } }));
  }
  await same("t", phone, laptop, again, other);
  await laptop.runner.deleteThread("t");
  await eventually(async () => expect(await tree(phone, "t")).toEqual({}));
});

test("a host that ends while it reads again what it lacks reads it later, and sends what it has", async () => {
  const { server, phone, laptop, gone, key, add } = await withOneGone();
  add({ ...BEGINS, runId: "beside", ...gone });
  await say(phone, "t", "r2", agentOf(counter(1)));
  await same("t", phone, laptop);
  const dbName = freshDb();
  let watch = device(server, "Watch", { dbName, clock: fastClock(100) });
  await same("t", watch, phone);
  await eventually(async () => expect((await watch.database.get("place"))?.seq).toBe(server.last));
  await eventually(async () => expect(await watch.database.thread(key)).not.toHaveProperty("unread"));
  await watch.close();
  watch = device(server, "Watch", { dbName });
  await inStep(watch);
  // What the space has of a thread is slow to come.
  const { entries } = watch.space;
  vi.spyOn(watch.space, "entries").mockImplementation(async function* (thread, signal) {
    await systemClock.after(Infinity, signal);
    yield* entries.call(watch.space, thread, signal);
  });
  add({ type: "end", runId: "beside", status: "finished", endedAt: 1, chunk: wholeOf("beside"), ...gone });
  await say(phone, "u", "u1", agentOf(counter(1)));
  await eventually(async () => expect(await tree(watch, "u")).toMatchObject({ u1: { status: "finished" } }));
  await eventually(async () => expect((await watch.database.get("place"))?.seq).toBe(server.last));
  await watch.close();
  watch = device(server, "Watch", { dbName });
  await eventually(async () => expect(await tree(watch, "t")).toMatchObject({ beside: { prev: null } }));
  await say(watch, "t", "w1", agentOf(counter(1)));
  await same("t", phone, watch);
});

test("a run that was left out is not taken up in the middle", async () => {
  const { phone, laptop } = await bothHave("r1");
  vi.spyOn(laptop.store, "claim").mockRejectedValueOnce(new RunnerError("invalid-input"));
  const { gate, letOn } = gated();
  const going = sayNow(phone, "t", "r2", agentOf(counter(6, (step) => (step === 3 ? gate : undefined))));
  await eventually(() => expect(laptop.said.join()).toContain("left out"));
  letOn();
  await going;
  await say(phone, "t", "r3", agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r3: { prev: "r1" } }));
  expect(lines(await shown(laptop, "t"))).toEqual(["r1-u", "r1-a", "r3-u", "r3-a"]);
});

test.for([
  ["that was left out, and came later,", false],
  ["that was left out once it had come again,", true],
] as const)("what continues a run %s waits for it where the thread is deleted meanwhile", async ([, atOnce]) => {
  const { server, phone, laptop, gone } = await withOneGone();
  const add = (...messages: SpaceMessage[]) =>
    addAll(
      server,
      messages.map((message) => ({ body: encodeMessage(message) })),
    );
  const whole = (runId: string, prev: string | null): SpaceMessage[] => [
    { ...BEGINS, runId, prev, ...gone },
    { type: "end", runId, status: "finished", endedAt: 1, chunk: wholeOf(runId), ...gone },
  ];
  // All of it waits for a run that is live, behind one that does, too.
  const { gate, letOn } = gated();
  const going = atOnce
    ? sayNow(laptop, "t", "live", agentOf(counter(2, (step) => (step === 1 ? gate : undefined))))
    : gate;
  if (atOnce) {
    await eventually(async () => expect(await tree(phone, "t")).toMatchObject({ live: { status: "running" } }));
    await add(...whole("beside", "r1"));
  }
  // As a device does that has deleted the thread, and is told that others keep it.
  await add({ ...BEGINS, runId: "again", ...gone }, { type: "abandon", runId: "again", ...gone });
  if (!atOnce) await hasRead(laptop, server);
  await add(...whole("again", null));
  await hasRead(laptop, server);
  letOn();
  await going;
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ again: { status: "finished" } }));
  await same("t", phone, laptop);
  laptop.space.connect(false);
  await laptop.runner.deleteThread("t");
  await add(...whole("behind", "again"));
  laptop.space.connect(true);
  for (const one of [phone, laptop]) {
    await eventually(async () => expect(await tree(one, "t")).toMatchObject({ behind: { prev: "again" } }));
  }
  await same("t", phone, laptop);
});
