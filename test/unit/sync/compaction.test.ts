import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, test, vi } from "vitest";
import { systemClock, type Clock } from "../../../src/platform/clock.js";
import { compact, type ReadEntry } from "../../../src/sync/compaction.js";
import { REST_MS } from "../../../src/sync/compacting-threads.js";
import {
  decodeMessage,
  encodeMessage,
  messageIn,
  type SentChunk,
  type SpaceMessage,
} from "../../../src/sync/messages.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { fastKey } from "../encryption/fast-key.js";
import { agentOf, counter, freshDb, gated } from "../runner/kit.js";
import {
  BEGINS,
  device,
  eventually,
  inStep,
  makeDevice,
  MemoryServer,
  minutes,
  say,
  shown,
  tree,
  types,
  type Device,
} from "./kit.js";

/*
 * The entries of a thread at rest become one, which comes to the same on all devices, whatever they had read before.
 */

/** Threads are at rest at once. */
const hasty: Clock = {
  ...systemClock,
  after: (ms, signal) => systemClock.after(ms >= REST_MS && ms <= 2 * REST_MS ? 2 : ms, signal),
};

type Options = NonNullable<Parameters<typeof makeDevice>[2]>;

/** Joins from two entries on. */
const joins: Options = { clock: hasty, compactFrom: 2 };

async function same(threadId: string, ...devices: readonly Device[]): Promise<void> {
  const [first, ...others] = devices;
  for (const other of others) {
    await eventually(async () => expect(await tree(other, threadId)).toEqual(await tree(first!, threadId)));
    expect(await shown(other, threadId)).toEqual(await shown(first!, threadId));
    const [one, another] = await Promise.all([first!, other].map(({ runner }) => runner.getThread(threadId)));
    expect(another?.title).toBe(one?.title);
  }
}

const joined = (server: MemoryServer) =>
  eventually(() => expect(types(server).filter((type) => type !== "thread")).toEqual(["whole"]));

test.each([
  ["", undefined],
  [", encrypted", () => new Encryption({ key: fastKey })],
])("many entries become one, for those who know them and for those who do not%s", async (_, key) => {
  const options = (): Options => (key === undefined ? {} : { encryption: key() });
  const server = new MemoryServer();
  const laptop = device(server, "Laptop", options());
  const dbName = freshDb();
  const phone = makeDevice(server, "Phone", { dbName, ...options() });
  await inStep(laptop, phone);
  await say(laptop, "t", "r1", agentOf(counter(20)));
  await laptop.runner.updateThread("t", { title: "A title" });
  await same("t", laptop, phone);
  // It was offline for all that comes now.
  await phone.close();
  await say(laptop, "t", "r2", agentOf(counter(20)));
  await laptop.runner.updateThread("t", { archived: true });
  await say(laptop, "t", "r3", agentOf(counter(20)));
  const before = server.entries.length;
  const joining = device(server, "Server", { ...joins, ...options() });
  await eventually(() => expect(server.entries.length).toBeLessThan(before));
  await same("t", laptop, joining);
  const fresh = device(server, "New", options());
  await inStep(fresh);
  await same("t", laptop, fresh);
  expect((await fresh.runner.getThread("t"))?.archived).toBe(true);
  const back = device(server, "Phone", { dbName, ...options() });
  await same("t", laptop, back);
  // All go on behind it.
  await say(back, "t", "r4", agentOf(counter(2)));
  await same("t", back, laptop, fresh, joining);
  expect(await tree(fresh, "t")).toMatchObject({ r4: { prev: "r3", status: "finished" } });
});

test("a long answer that was streamed is one entry of a fraction of its size", async () => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop", joins);
  await inStep(laptop);
  const { gate, letOn } = gated();
  const sent = (): number => types(server).filter((type) => type === "events").length;
  // Every tenth waits for an entry of its own, however busy the machine is.
  const paced = (n: number) =>
    n === 299 ? gate : n % 10 === 0 ? eventually(() => expect(sent()).toBeGreaterThanOrEqual(n / 10)) : undefined;
  const going = say(laptop, "t", "r1", agentOf(counter(300, paced)));
  await eventually(() => expect(sent()).toBeGreaterThan(20));
  const streamed = server.entries.reduce((sum, { body }) => sum + body.length, 0);
  letOn();
  await going;
  await joined(server);
  const whole = server.entries.find(({ seq, body }) => messageIn({ seq, body }, "t")?.type === "whole");
  expect(whole?.body.length).toBeLessThan(streamed / 2);
  const fresh = device(server, "New");
  await inStep(fresh);
  await same("t", laptop, fresh);
});

test("of a deleted thread nothing is left but the ids of its runs, and it stays deleted for whoever was away", async () => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop", joins);
  const dbName = freshDb();
  const phone = makeDevice(server, "Phone", { dbName });
  await inStep(laptop, phone);
  await say(phone, "t", "r1", agentOf(counter(3)));
  await same("t", phone, laptop);
  await say(laptop, "t", "r2", agentOf(counter(3)));
  await same("t", laptop, phone);
  await phone.close();
  expect(await laptop.runner.deleteThread("t")).toBe(true);
  await eventually(() => expect(types(server)).toEqual(["whole"]));
  const { body } = server.entries[0]!;
  expect(new TextDecoder().decode(body)).not.toContain("r1-u");
  const back = device(server, "Phone", { dbName });
  const fresh = device(server, "New");
  await inStep(back, fresh);
  await eventually(async () => expect(await back.runner.getThread("t")).toBeUndefined());
  expect(await fresh.runner.listThreads()).toEqual([]);
  // It may begin anew.
  await say(back, "t", "r3", agentOf(counter(2)));
  await same("t", back, laptop, fresh);
  expect(Object.keys(await tree(fresh, "t"))).toEqual(["r3"]);
});

test("what was added offline to a thread that was deleted and joined meanwhile comes back with all that was there", async () => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop", joins);
  const phone = device(server, "Phone");
  await inStep(laptop, phone);
  await say(laptop, "t", "r1", agentOf(counter(3)));
  await same("t", laptop, phone);
  phone.space.connect(false);
  await say(phone, "t", "r2", agentOf(counter(3)));
  await laptop.runner.deleteThread("t");
  await eventually(() => expect(types(server)).toEqual(["whole"]));
  phone.space.connect(true);
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1", "r2"]));
  await same("t", phone, laptop);
});

test("nothing is joined while a run is live, and nothing where removing is not allowed", async () => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop", { ...joins, faults: { mayRemove: () => false } });
  await inStep(laptop);
  await say(laptop, "t", "r1", agentOf(counter(3)));
  await eventually(() => expect(types(server).at(-1)).toBe("end"));
  const { gate, letOn } = gated();
  const phone = device(server, "Phone", joins);
  const going = say(laptop, "t", "r2", agentOf(counter(3, (n) => (n === 1 ? gate : undefined))));
  await eventually(async () => expect(await phone.runner.isRunning({ threadId: "t" })).toBe(true));
  const before = types(server).length;
  expect(types(server)).not.toContain("whole");
  letOn();
  await going;
  await eventually(() => expect(server.entries.length).toBeLessThan(before));
  await same("t", laptop, phone);
});

test("entries that are joined while another device reads them come whole", async () => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop");
  await inStep(laptop);
  for (const runId of ["r1", "r2", "r3"]) await say(laptop, "t", runId, agentOf(counter(5)));
  await inStep(laptop);
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(3));
  const fresh = makeDevice(server, "New");
  const { entries } = fresh.space;
  let read = 0;
  vi.spyOn(fresh.space, "entries").mockImplementation(async function* (...of) {
    for await (const entry of entries.apply(fresh.space, of)) {
      yield entry;
      if (++read !== 4) continue;
      const joining = device(server, "Server", joins);
      await joined(server);
      await same("t", laptop, joining);
    }
  });
  await eventually(async () => expect(Object.keys(await tree(fresh, "t"))).toHaveLength(3));
  expect(read).toBeGreaterThan(4);
  await same("t", laptop, fresh);
  await fresh.close();
});

test("one that says less than is known, or is not of the thread, says nothing", async () => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop");
  const phone = device(server, "Phone");
  await inStep(laptop, phone);
  await say(laptop, "t", "r1", agentOf(counter(3)));
  await same("t", laptop, phone);
  await eventually(() => expect(types(server).at(-1)).toBe("end"));
  const { thread, seq } = server.entries.at(-1)!;
  const from = { threadId: "t", device: { id: "x", name: "X" } };
  const forged: SpaceMessage[] = [
    { type: "whole", upTo: seq - 1, entries: [], counts: true, ...from },
    { type: "whole", upTo: seq, entries: [], ...from },
  ];
  for (const [at, message] of forged.entries()) {
    expect(server.add(thread, encodeMessage(message), server.last, `forged ${at}`)).toBeDefined();
  }
  await say(phone, "t", "r2", agentOf(counter(3)));
  await same("t", phone, laptop);
  expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "finished" }, r2: { prev: "r1" } });
});

const base = { threadId: "t", device: { id: "d", name: "D" } };
const entry = (seq: number, message: SpaceMessage): ReadEntry => ({ seq, message });

test.each<[string, unknown]>([
  ["entries that are no list", { upTo: 3, entries: {} }],
  [
    "an entry of another thread",
    { upTo: 3, entries: [{ seq: 1, message: { ...base, threadId: "u", type: "release", runId: "r" } }] },
  ],
  [
    "entries out of order",
    { upTo: 3, entries: [2, 1].map((seq) => ({ seq, message: { ...base, type: "release", runId: "r" } })) },
  ],
  ["an entry behind itself", { upTo: 3, entries: [{ seq: 4, message: { ...base, type: "release", runId: "r" } }] }],
  ["one in another", { upTo: 3, entries: [{ seq: 1, message: { ...base, type: "whole", upTo: 1, entries: [] } }] }],
  ["no place", { entries: [] }],
])("it is refused with %s", (_, fields) => {
  const body = new TextEncoder().encode(JSON.stringify({ v: 2, type: "whole", ...base, ...(fields as object) }));
  expect(decodeMessage(body)).toBeUndefined();
});

test("claims and what came too late are left out, and each entry keeps its place", () => {
  const entries = [
    entry(3, { type: "claim", runId: "r", ...base }),
    entry(4, { type: "release", runId: "r", ...base }),
    entry(9, { type: "deleted", knew: 7, ...base }),
  ];
  expect(compact(entries)).toEqual({ entries: [], state: { last: 9, lastRun: 0, active: null, open: {} } });
});

test("events that are sent again, from an earlier one on, count once, in one entry, too", () => {
  const chunk = (firstSeq: number, ...events: BaseEvent[]): SentChunk => {
    const entries = events.map((event) => ({ event }));
    return { firstSeq, count: entries.length, at: 1, times: [entries.length, 0], entries };
  };
  const started: BaseEvent = { type: EventType.RUN_STARTED, threadId: "t", runId: "r" };
  const custom = (value: number): BaseEvent => ({ type: EventType.CUSTOM, name: "n", value });
  const finished: BaseEvent = { type: EventType.RUN_FINISHED, threadId: "t", runId: "r" };
  const run: SpaceMessage = { ...BEGINS, ...base, runId: "r" };
  const events = (...chunks: SentChunk[]): SpaceMessage => ({ ...base, type: "events", runId: "r", chunks });
  const until = [
    entry(1, run),
    entry(2, events(chunk(0, started, custom(1), custom(2)))),
    entry(3, events(chunk(1, custom(1), custom(2), custom(3)))),
  ];
  const open = compact(until)!;
  expect(open.state.open["r"]?.nextSeq).toBe(4);
  const kept = open.entries.at(-1)!.message;
  const chunks = kept.type === "events" ? kept.chunks : [];
  const values = chunks.flatMap(({ entries }) => entries.map(({ event }) => event));
  expect(values).toEqual([started, custom(1), custom(2), custom(3)]);
  const end: SpaceMessage = {
    ...base,
    type: "end",
    runId: "r",
    status: "finished",
    endedAt: 2,
    chunk: chunk(3, custom(3), custom(4), finished),
  };
  expect(compact([...until, entry(4, end)])!.state).toMatchObject({ open: {}, lastRun: 4 });
  // All of it was there, or something is missing.
  for (const wrong of [chunk(1, custom(1), custom(2), finished), chunk(5, finished)])
    expect(compact([...until, entry(4, { ...end, chunk: wrong })])!.state.open["r"]).toBeDefined();
});

/** The device falls silent in the middle of `r1`, and another one goes on. */
async function silent(server: MemoryServer, count: number) {
  const gone = device(server, "Gone");
  const { clock, pass } = minutes(hasty);
  const laptop = device(server, "Laptop", { clock });
  await inStep(gone, laptop);
  await say(gone, "t", "r0", agentOf(counter(2)));
  const { gate, letOn } = gated();
  const going = say(gone, "t", "r1", agentOf(counter(4, (n) => (n === count ? gate : undefined))));
  await eventually(async () => expect(await tree(laptop, "t")).toHaveProperty("r1"));
  if (count > 0) await eventually(() => expect(types(server).at(-1)).toBe("events"));
  gone.space.connect(false);
  pass();
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "broken" } }));
  await say(laptop, "t", "r2", agentOf(counter(2)));
  return { gone, laptop, letOn, going };
}

test("a run that somebody has gone on from is over for a new device, which has not heard of anybody yet", async () => {
  const server = new MemoryServer();
  const { laptop } = await silent(server, 2);
  // Devices have had the time to answer, and nobody is away.
  const start = systemClock.elapsed();
  const elapsed = (): number => Math.min(systemClock.elapsed() - start, 5_000);
  const fresh = device(server, "New", { clock: { ...systemClock, elapsed } });
  await inStep(fresh);
  await same("t", laptop, fresh);
});

test.each([0, 2])(
  "a run whose device is away keeps no thread from being joined, and comes back with it (%s events)",
  async (count) => {
    const server = new MemoryServer();
    const { gone, laptop, letOn, going } = await silent(server, count);
    const { clock, pass } = minutes(hasty);
    const joining = device(server, "Server", { ...joins, clock });
    await inStep(joining);
    pass();
    await joined(server);
    const fresh = device(server, "New");
    await inStep(fresh);
    await same("t", laptop, joining, fresh);
    letOn();
    await going;
    gone.space.connect(true);
    await eventually(async () => expect(await tree(gone, "t")).toMatchObject({ r1: { status: "finished" }, r2: {} }));
    await same("t", gone, laptop, joining, fresh);
  },
);

test("a claim whose device is away keeps no thread from being joined", async () => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop");
  await inStep(laptop);
  await say(laptop, "t", "r0", agentOf(counter(2)));
  const last = server.entries.at(-1)!;
  const claim = { type: "claim", threadId: "t", runId: "r1", device: { id: "gone", name: "Gone" } } as const;
  server.add(last.thread, encodeMessage(claim), last.seq, "claim");
  const { clock, pass } = minutes(hasty);
  const joining = device(server, "Server", { ...joins, clock });
  await inStep(joining);
  pass();
  await joined(server);
  await say(joining, "t", "r2", agentOf(counter(2)));
  await same("t", joining, laptop);
});
