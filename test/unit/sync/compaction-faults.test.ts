import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, test, vi } from "vitest";
import { systemClock, type Clock } from "../../../src/platform/clock.js";
import { REST_MS } from "../../../src/sync/compacting-threads.js";
import { QUIET_MS } from "../../../src/sync/leaving-threads.js";
import { encodeMessage, messageIn, type SpaceMessage } from "../../../src/sync/messages.js";
import { SpaceOffline, type SpaceFrame } from "../../../src/sync/space.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { agentOf, collect, counter, fastClock, freshDb, inputOf, user } from "../runner/kit.js";
import {
  BEGINS,
  device,
  deviceOn,
  eventually,
  inStep,
  lineOf,
  makeDevice,
  MemoryServer,
  say,
  tree,
  types,
  type Device,
} from "./kit.js";
import { MemorySpace } from "./memory-space.js";

/*
 * What a review as a hostile user has found: devices that were away while the entries of a thread were joined, and hosts that
 * end in the middle of that.
 */

/** Resolves when nothing is added any more. */
function still(server: MemoryServer): Promise<void> {
  let last = -1;
  let looks = 0;
  return eventually(() => {
    looks = server.last === last ? looks + 1 : 0;
    ({ last } = server);
    if (looks < 20) throw new Error("Something is still added");
  });
}

/** Threads are at rest at once. */
const restless: Clock = {
  ...systemClock,
  after: (ms, signal) => systemClock.after(ms >= REST_MS && ms <= 2 * REST_MS ? 2 : ms, signal),
};
/** And leave at once. */
const hasty: Clock = {
  ...restless,
  after: (ms, signal) => (ms === QUIET_MS ? systemClock.after(0, signal) : restless.after(ms, signal)),
};
const joins = { clock: restless, compactFrom: 2 };
const ghost = { threadId: "t", device: { id: "ghost", name: "Ghost" } };

const story = (server: MemoryServer): string => server.entries.flatMap(lineOf).join("\n");
const ends = (server: MemoryServer): number => types(server).filter((type) => type === "end").length;
const runsOn = async (one: Device): Promise<string[]> => Object.keys(await tree(one, "t"));
const isBusy = async (one: Device): Promise<boolean> => one.runner.isRunning({ threadId: "t" });
/** Resolves when all have these runs, to the end. */
const haveRuns = (devices: readonly Device[], runs: readonly string[], server: MemoryServer) =>
  eventually(async () => {
    for (const one of devices) {
      expect([one.name, ...(await runsOn(one))], story(server)).toEqual([one.name, ...runs]);
      expect(await isBusy(one)).toBe(false);
    }
  });

async function add(server: MemoryServer, message: SpaceMessage): Promise<void> {
  const thread = await keyOfThread(message.threadId);
  const last = server.entries.findLast((entry) => entry.thread === thread)?.seq ?? 0;
  expect(server.add(thread, encodeMessage(message), last, `${thread}-${last}`)).toBeDefined();
}

/** Some other device joins the entries of the thread, and ends. */
async function joined(server: MemoryServer): Promise<void> {
  const key = await keyOfThread("t");
  const joiner = makeDevice(server, "Joiner", joins);
  await eventually(() => {
    const its = server.entries.flatMap(({ thread, seq, body }) =>
      thread === key ? (messageIn({ seq, body }, "t")?.type ?? []) : [],
    );
    expect(its.filter((type) => type !== "thread")).toEqual(["whole"]);
  });
  await still(server);
  await joiner.close();
}

/** A run of each, on both. */
async function two() {
  const server = new MemoryServer();
  const dbName = freshDb();
  const [laptop, phone] = [device(server, "Laptop"), device(server, "Phone", { dbName })];
  await inStep(laptop, phone);
  await say(laptop, "t", "r1", agentOf(counter(3)));
  await haveRuns([phone], ["r1"], server);
  await say(phone, "t", "r2", agentOf(counter(3)));
  await haveRuns([laptop], ["r1", "r2"], server);
  await still(server);
  return { server, laptop, phone, dbName };
}

const rename = async (server: MemoryServer, one: Device): Promise<void> => {
  await one.runner.updateThread("t", { title: "Renamed" });
  await eventually(() => expect(types(server).at(-1)).toBe("thread"));
};
const isRenamed = (one: Device) =>
  eventually(async () => expect((await one.runner.getThread("t"))?.title).toBe("Renamed"));

/** The phone was away while the entries were joined, and its connection falls when it is to read all of them. */
async function cutInRestoring() {
  const all = await two();
  const { server, laptop, phone } = all;
  phone.space.connect(false);
  await rename(server, laptop);
  await joined(server);
  let isCut = false;
  const reads = vi.spyOn(phone.space, "entries").mockImplementation(async function* () {
    isCut = true;
    yield* [];
    throw new SpaceOffline();
  });
  phone.space.connect(true);
  await eventually(() => expect(isCut).toBe(true));
  phone.space.connect(false);
  reads.mockRestore();
  return all;
}

test("own runs that the space has are not sent again", async () => {
  const { server, laptop, phone } = await two();
  phone.space.connect(false);
  await rename(server, laptop);
  await joined(server);
  phone.space.connect(true);
  await isRenamed(phone);
  await still(server);
  expect(types(server), story(server)).toEqual(["whole", "thread"]);
});

test("a deletion behind them counts", async () => {
  const { server, laptop, phone } = await two();
  phone.space.connect(false);
  await rename(server, laptop);
  await joined(server);
  await laptop.runner.deleteThread("t");
  await eventually(() => expect(types(server).at(-1)).toBe("deleted"));
  phone.space.connect(true);
  await haveRuns([phone, laptop], [], server);
  await still(server);
  expect(types(server).at(-1), story(server)).toBe("deleted");
});

test("a deletion of a third device is not refused for what a second one had added before", async () => {
  const { server, laptop, phone } = await two();
  const tablet = device(server, "Tablet");
  await haveRuns([tablet], ["r1", "r2"], server);
  phone.space.connect(false);
  await rename(server, laptop);
  await isRenamed(tablet);
  await joined(server);
  await inStep(tablet);
  tablet.space.connect(false);
  await tablet.runner.deleteThread("t");
  phone.space.connect(true);
  await isRenamed(phone);
  await still(server);
  tablet.space.connect(true);
  await haveRuns([laptop, phone, tablet], [], server);
});

test.each([true, false])("a thread that was deleted and begun anew is the new one (joined: %s)", async (isJoined) => {
  const server = new MemoryServer();
  const [laptop, phone] = [device(server, "Laptop"), device(server, "Phone")];
  await inStep(laptop, phone);
  await say(laptop, "t", "r1", agentOf(counter(3)));
  await haveRuns([phone], ["r1"], server);
  await still(server);
  phone.space.connect(false);
  await laptop.runner.deleteThread("t");
  await eventually(() => expect(types(server).at(-1)).toBe("deleted"));
  await say(laptop, "t", "r9", agentOf(counter(3)));
  await eventually(() => expect(ends(server)).toBe(2));
  if (isJoined) await joined(server);
  phone.space.connect(true);
  await haveRuns([laptop, phone], ["r9"], server);
  await still(server);
  await haveRuns([laptop, phone], ["r9"], server);
});

test.each([true, false])(
  "a thread that was deleted and begun anew offline is the new one (joined: %s)",
  async (isJoined) => {
    const { server, laptop, phone } = await two();
    phone.space.connect(false);
    await phone.runner.deleteThread("t");
    await say(phone, "t", "r9", agentOf(counter(3)));
    await rename(server, laptop);
    if (isJoined) await joined(server);
    phone.space.connect(true);
    await haveRuns([laptop, phone], ["r9"], server);
    await still(server);
    await haveRuns([laptop, phone], ["r9"], server);
  },
);

test("what servers have lost of a device is found missing also where others have added as much, and it was joined", async () => {
  class Held extends MemorySpace {
    hold: Promise<void> | undefined;
    override async *read(...of: Parameters<MemorySpace["read"]>): AsyncGenerator<SpaceFrame, void> {
      for await (const frame of super.read(...of)) {
        await this.hold;
        yield frame;
      }
    }
  }
  const server = new MemoryServer();
  const space = new Held(server);
  const laptop = deviceOn(space, "Laptop");
  const tablet = device(server, "Tablet");
  try {
    await inStep(laptop, tablet);
    await say(laptop, "t", "r1", agentOf(counter(2)));
    await haveRuns([tablet], ["r1"], server);
    await still(server);
    tablet.space.connect(false);
    const before = server.last;
    let letOn!: () => void;
    space.hold = new Promise<void>((go) => (letOn = go));
    await say(laptop, "t", "r2", agentOf(counter(2)));
    await eventually(() => expect(ends(server)).toBe(2));
    await still(server);
    space.connect(false);
    const lost = server.last - before;
    server.entries = server.entries.filter(({ seq }) => seq <= before);
    tablet.space.connect(true);
    await inStep(tablet);
    for (let n = 1; n <= lost; n++) {
      await tablet.runner.updateThread("t", { title: `T${n}` });
      await eventually(() => expect(server.last).toBe(before + n));
    }
    await joined(server);
    space.connect(true);
    letOn();
    space.hold = undefined;
    await haveRuns([laptop, tablet], ["r1", "r2"], server);
  } finally {
    await laptop.close();
  }
});

/** Asks the first time, and is answered the second time. */
const asking = () =>
  agentOf(async function* ({ resume, threadId, runId }): AsyncGenerator<BaseEvent> {
    if ((resume ?? []).length > 0) return;
    const outcome = { type: "interrupt", interrupts: [{ id: "i1", reason: "ask" }] };
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome } as BaseEvent;
  });

test.each(["r1", "r2"])("an answer that was given unseen keeps a deleted thread (as run %s)", async (runId) => {
  const server = new MemoryServer();
  const [laptop, phone] = [device(server, "Laptop"), device(server, "Phone")];
  await inStep(laptop, phone);
  const run = (one: Device, input: object) =>
    collect(one.runner.run({ threadId: "t", agent: asking(), input: { ...inputOf("t", runId), ...input } }));
  await run(laptop, { runId: "r1" });
  await haveRuns([phone], ["r1"], server);
  await still(server);
  phone.space.connect(false);
  await run(phone, { messages: [user("answer")], resume: [{ interruptId: "i1", status: "resolved" }] });
  await laptop.runner.deleteThread("t");
  await eventually(() => expect(types(server).at(-1)).toBe("deleted"));
  await joined(server);
  phone.space.connect(true);
  await eventually(async () => {
    for (const { runner } of [phone, laptop]) expect(await runner.listRuns("t"), story(server)).toHaveLength(2);
  });
});

test("a pending change of the list is told, also one back to what the thread had first", async () => {
  const { server, laptop, phone } = await two();
  const { title } = (await phone.runner.getThread("t"))!;
  await laptop.runner.updateThread("t", { archived: true, title: "A" });
  await eventually(async () => expect(await phone.runner.getThread("t")).toMatchObject({ archived: true, title: "A" }));
  await still(server);
  phone.space.connect(false);
  await phone.runner.updateThread("t", { archived: false, title });
  await laptop.runner.updateThread("t", { pinned: true });
  await eventually(() => expect(types(server).at(-1)).toBe("thread"));
  await joined(server);
  phone.space.connect(true);
  await eventually(async () => {
    for (const { runner } of [phone, laptop])
      expect(await runner.getThread("t")).toMatchObject({ archived: false, pinned: true, title });
  });
});

test.each([false, true])("a thread is deleted before it was read again (its host ends: %s)", async (isEnded) => {
  const { server, laptop, phone, dbName } = await cutInRestoring();
  expect(await phone.runner.deleteThread("t")).toBe(true);
  if (isEnded) await phone.close();
  else phone.space.connect(true);
  const back = isEnded ? device(server, "Phone", { dbName }) : phone;
  await haveRuns([back, laptop], [], server);
});

test("a read that fails meanwhile forgets no deletion that is still to be told", async () => {
  const { server, laptop, phone } = await two();
  phone.space.connect(false);
  await phone.runner.deleteThread("t");
  await rename(server, laptop);
  await joined(server);
  const failing = vi.spyOn(phone.store, "runNamed").mockRejectedValueOnce(new Error("The disk is busy"));
  phone.space.connect(true);
  await haveRuns([laptop, phone], [], server);
  expect(failing).toHaveBeenCalled();
});

test("a broken run that its device sends again, and not to the end, keeps what all had of it", async () => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop", { clock: fastClock(50) });
  await inStep(laptop);
  const its = { runId: "r1", ...ghost };
  const custom = (n: number) => ({ event: { type: EventType.CUSTOM, name: `n${n}`, value: n } });
  const started = { event: { type: EventType.RUN_STARTED, threadId: "t", runId: "r1" } };
  const chunk = (firstSeq: number, entries: readonly object[]) => {
    return { firstSeq, count: entries.length, at: 1, times: [entries.length, 0], entries };
  };
  const broken = { event: { type: EventType.RUN_ERROR, message: "broken", code: "RUN_BROKEN" } };
  const first = chunk(0, [started, custom(1)]);
  const said = async (...messages: readonly object[]): Promise<void> => {
    for (const message of messages) await add(server, { ...message, ...its } as SpaceMessage); // as another device says it
  };
  const end = { type: "end", status: "broken", endedAt: 2, closedFrom: 5, chunk: chunk(5, [broken]) };
  await said(BEGINS, { type: "events", chunks: [first, chunk(2, [custom(2), custom(3), custom(4)])] }, end);
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "broken" } }));
  // It is not the end of the path any more.
  await say(laptop, "t", "r2", agentOf(counter(2)));
  const placing = vi.spyOn(laptop.store, "placeRun");
  await said(BEGINS, { type: "events", chunks: [first] });
  // What came of it is placed, and more of it is waited for.
  await eventually(() => expect(placing.mock.settledResults.map(({ type }) => type)).toEqual(["fulfilled"]));
  expect((await laptop.store.runById("t", "r1"))?.eventCount).toBe(6);
});

test.each([false, true])("an entry cannot stand for what comes behind it (read by a new device: %s)", async (isNew) => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop");
  await inStep(laptop);
  await say(laptop, "t", "r1", agentOf(counter(3)));
  await eventually(() => expect(types(server).at(-1)).toBe("end"));
  const upTo = Number.MAX_SAFE_INTEGER;
  const entries = [{ seq: upTo, message: { type: "thread", title: "x", ...ghost } }] as const;
  await add(server, { type: "whole", upTo, entries, ...ghost });
  const other = isNew ? device(server, "Other") : laptop;
  await inStep(other);
  await say(other, "t", "r2", agentOf(counter(3)));
  await haveRuns([device(server, "Third")], ["r1", "r2"], server);
});

test("what remains of a deleted thread where a host ended before it was removed is removed by the next one", async () => {
  const server = new MemoryServer();
  const laptop = makeDevice(server, "Laptop", joins);
  const { remove } = laptop.space;
  vi.spyOn(laptop.space, "remove").mockImplementation(async (thread, below) => {
    if (below > 0) throw new SpaceOffline();
    return remove.call(laptop.space, thread, below);
  });
  await inStep(laptop);
  await say(laptop, "t", "r1", agentOf(counter(3)));
  await eventually(() => expect(ends(server)).toBe(1));
  await laptop.runner.deleteThread("t");
  await eventually(() => expect(types(server).slice(-2)).toEqual(["deleted", "whole"]));
  await laptop.close();
  const other = device(server, "Other", joins);
  await inStep(other);
  await eventually(() => expect(types(server), story(server)).toEqual(["whole"]));
  // Once is enough.
  const again = vi.spyOn(other.space, "remove");
  await say(other, "u", "u1", agentOf(counter(3)));
  await still(server);
  expect(again.mock.calls.filter(([, below]) => below > 0 && below < 10)).toEqual([]);
});

test("a thread leaves while its older entries are removed, and the place is saved on", async () => {
  const { server, laptop, phone, dbName } = await two();
  await phone.close();
  const again = makeDevice(server, "Phone", { dbName, keep: "opened", maxThreads: 0, clock: hasty, compactFrom: 2 });
  const { remove } = again.space;
  let letOn!: () => void;
  const gate = new Promise<void>((go) => (letOn = go));
  vi.spyOn(again.space, "remove").mockImplementation(async (thread, below) => {
    if (below > 0) await gate;
    return remove.call(again.space, thread, below);
  });
  let hasLeft = false;
  const { leave } = again.store;
  vi.spyOn(again.store, "leave").mockImplementation(async (...of) => {
    await eventually(() => expect(types(server)).toContain("whole"));
    const has = await leave!(...of);
    hasLeft ||= has;
    return has;
  });
  try {
    await eventually(() => expect(hasLeft).toBe(true));
    letOn();
    await still(server);
    await say(laptop, "u", "u1", agentOf(counter(2)));
    await eventually(async () => expect((await again.database.get("place"))?.seq, story(server)).toBe(server.last));
  } finally {
    await again.close();
  }
});

test("a host that ends while a thread leaves sends nothing again", async () => {
  const { server, laptop, phone, dbName } = await two();
  const before = server.entries.length;
  await phone.close();
  const dying = makeDevice(server, "Phone", { dbName, keep: "opened", maxThreads: 0, clock: hasty });
  const leaving = vi.spyOn(dying.store, "leave").mockRejectedValue(new Error("The browser ends"));
  await eventually(() => expect(leaving).toHaveBeenCalled());
  await dying.close();
  const again = device(server, "Phone", { dbName, keep: "opened" });
  await inStep(again);
  await haveRuns([laptop, again], ["r1", "r2"], server);
  await still(server);
  expect(server.entries.length, story(server)).toBe(before);
});

test("a title that is given while the entries are read is in the list of those who keep what they open", async () => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop");
  await inStep(laptop);
  await say(laptop, "t", "r1", agentOf(counter(3)));
  await eventually(() => expect(types(server).at(-1)).toBe("end"));
  const joiner = makeDevice(server, "Joiner", joins);
  const { remove, entries } = joiner.space;
  let is: "before" | "joining" | "renamed" = "before";
  vi.spyOn(joiner.space, "remove").mockImplementation(async (...of) => {
    if (of[1] === 0 && is === "before") is = "joining";
    return remove.apply(joiner.space, of);
  });
  vi.spyOn(joiner.space, "entries").mockImplementation(async function* (...of) {
    if (is === "joining") {
      is = "renamed";
      await rename(server, laptop);
      await isRenamed(joiner);
    }
    yield* entries.apply(joiner.space, of);
  });
  await eventually(() => expect(types(server)).toEqual(["whole", "thread"]));
  expect(is).toBe("renamed");
  await joiner.close();
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () =>
    expect((await phone.runner.listThreads()).map(({ title }) => title)).toEqual(["Renamed"]),
  );
});
