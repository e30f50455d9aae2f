import { EventType, type BaseEvent } from "@ag-ui/client";
import { describe, expect, onTestFinished, test, vi, type Mock } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { RunnerError } from "../../../src/run/errors.js";
import type { Chunk } from "../../../src/run/types.js";
import type { SpaceFrame, SpacePlace } from "../../../src/sync/space.js";
import { SyncDatabase } from "../../../src/sync/sync-database.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { agentOf, counter, fastClock, freshDb, gated } from "../runner/kit.js";
import {
  device,
  deviceOn,
  ended,
  eventually,
  inStep,
  MemoryServer,
  say,
  sayNow,
  sayOffline,
  shown,
  statusOf,
  tree,
  types,
  type Device,
} from "./kit.js";
import { MemorySpace } from "./memory-space.js";

/*
 * One device, one thread or one attempt fails: nothing else does.
 */

/** To whoever reads by it, entries are of a newer version from some time on. */
class NewerSpace extends MemorySpace {
  isNewer = false;

  override async *read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void> {
    for await (const frame of super.read(after, signal)) {
      if (frame.is === "entry" && this.isNewer) yield { ...frame, body: new TextEncoder().encode('{"v":99}') };
      else yield frame;
    }
  }
}

test("a device that has become outdated says that it leaves: its live run holds no thread any more", async () => {
  const server = new MemoryServer();
  const space = new NewerSpace(server);
  const phone = deviceOn(space, "Phone");
  onTestFinished(phone.close);
  const laptop = device(server, "Laptop");
  await inStep(phone, laptop);
  const { gate } = gated();
  void sayNow(phone, "t", "r1", agentOf(counter(3, () => gate)));
  await eventually(async () => expect(await laptop.runner.isRunning({ threadId: "t" })).toBe(true));
  space.isNewer = true;
  await say(laptop, "u", "r1", agentOf(counter(1)));
  await eventually(async () => expect(await statusOf(phone)).toMatchObject({ is: "refused" }));
  await eventually(async () => expect((await statusOf(laptop)).devices).toMatchObject([{ name: "Laptop" }]));
  await say(laptop, "t", "r2", agentOf(counter(1)));
  expect(await laptop.runner.getRun("r1", { threadId: "t" })).toMatchObject({ status: "broken" });
  // Whoever connects anew asks all devices.
  const tablet = device(server, "Tablet");
  await inStep(tablet);
  await eventually(async () => expect((await statusOf(laptop)).devices).toHaveLength(2));
  expect((await statusOf(tablet)).devices.map(({ name }) => name)).not.toContain("Phone");
});

test("a thread that is read again stops the device at what a newer version says, and removes nothing of it", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const phone = device(server, "Phone", { dbName });
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(() => expect(ended(server)).toBe(1));
  await phone.close();
  // A newer build of this device has read it, before people went back to this one.
  const key = await keyOfThread("t");
  const { seq } = server.entries.at(-1)!;
  server.add(key, new TextEncoder().encode('{"v":99}'), seq, "newer");
  const database = new SyncDatabase(dbName, systemClock);
  const known = (await database.thread(key))!;
  const last = seq + 1;
  const place = (await database.get("place"))!;
  await database.put([{ ...known, unread: true, state: { ...known.state, last } }], { ...place, seq: last });
  await database.close();
  const older = device(server, "Phone", { dbName });
  await eventually(async () => expect(await statusOf(older)).toMatchObject({ is: "refused", isCurrent: false }));
  await say(older, "t", "r2", agentOf(counter(1)));
  expect(server.entries.at(-1)).toMatchObject({ seq: last });
  expect(Object.keys(await tree(older, "t"))).toEqual(["r1", "r2"]);
});

test.for(["prepare", "device"] as const)(
  "a database that fails once at the start (%s) is tried again",
  async (fails) => {
    const failing = vi.spyOn(SyncDatabase.prototype, fails).mockRejectedValueOnce(new RunnerError("storage-lost"));
    onTestFinished(() => failing.mockRestore());
    const phone = device(new MemoryServer(), "Phone");
    await eventually(() => expect(failing).toHaveBeenCalledTimes(2));
    await inStep(phone);
  },
);

/** Reads of the thread "bad" come upon a record that cannot be read. */
function damage<Name extends "runNamed" | "thread" | "chunks" | "head">({ store }: Device, name: Name) {
  const read = store[name].bind(store) as (threadId: string, ...more: unknown[]) => Promise<unknown>;
  const failing = vi.spyOn(store, name) as unknown as Mock<typeof read>;
  return failing.mockImplementation(async (threadId, ...more) => {
    if (threadId === "bad") throw new RunnerError("corrupt-record", { threadId, store: "runs" });
    return read(threadId, ...more);
  });
}

test("a damaged record of one thread stops no other one", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await inStep(phone, laptop);
  await say(phone, "bad", "r1", agentOf(counter(1)));
  await eventually(async () => expect(await laptop.runner.getRun("r1", { threadId: "bad" })).toBeDefined());
  damage(laptop, "runNamed");
  await say(phone, "bad", "r2", agentOf(counter(1)));
  await say(phone, "good", "r1", agentOf(counter(1)));
  await eventually(async () =>
    expect(await laptop.runner.getRun("r1", { threadId: "good" })).toMatchObject({ status: "finished" }),
  );
});

test("what fails again and again is logged once", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop", { clock: fastClock(50) })];
  await inStep(phone, laptop);
  const failing = damage(laptop, "head");
  await say(phone, "bad", "r1", agentOf(counter(1)));
  await eventually(() => expect(failing.mock.calls.length).toBeGreaterThan(20));
  expect(laptop.said.filter((line) => line.includes("not in step"))).toHaveLength(1);
});

test("a host that starts with a damaged entry in its list keeps all other threads in step", async () => {
  const server = new MemoryServer();
  const [phone, first] = [device(server, "Phone"), device(server, "Laptop")];
  await say(phone, "bad", "r1", agentOf(counter(1)));
  await eventually(async () => expect(await first.runner.getRun("r1", { threadId: "bad" })).toBeDefined());
  await first.close();
  const laptop = device(server, "Laptop", { dbName: first.runner.joinDevices().parts.dbName });
  damage(laptop, "thread");
  await say(phone, "bad", "r2", agentOf(counter(1)));
  await say(phone, "good", "r1", agentOf(counter(1)));
  await eventually(async () =>
    expect(await laptop.runner.getRun("r1", { threadId: "good" })).toMatchObject({ status: "finished" }),
  );
});

test("a run of which others have a part, and the rest cannot be read here, holds the thread no longer", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await inStep(phone, laptop);
  const { gate, letOn } = gated();
  const running = sayNow(phone, "bad", "r1", agentOf(counter(3, (step) => (step === 2 ? gate : undefined))));
  const has = async (): Promise<string> =>
    JSON.stringify(await laptop.runner.getRunEvents("r1", { threadId: "bad" }).catch(() => []));
  await eventually(async () => expect(await has()).toContain("1 "));
  phone.space.connect(false);
  letOn();
  await running;
  damage(phone, "chunks");
  phone.space.connect(true);
  await eventually(() => expect(types(server)).toContain("abandon"));
  await say(laptop, "bad", "r2", agentOf(counter(1)));
  // What was shown stays.
  expect(await laptop.runner.getRun("r1", { threadId: "bad" })).toMatchObject({ status: "broken" });
  expect((await shown(laptop, "bad")).messages).toMatchObject([{}, { content: "0 1 " }, {}, { content: "0 " }]);
  await eventually(() => expect(ended(server)).toBe(1));
  expect(types(server).filter((type) => type === "abandon")).toHaveLength(1);
});

test("a run with the longest ids is stopped from another device", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await inStep(phone, laptop);
  const threadId = "t".repeat(20_000);
  const { gate } = gated();
  const running = sayNow(phone, threadId, "r1", agentOf(counter(3, () => gate)));
  await eventually(async () => expect(await laptop.runner.isRunning({ threadId })).toBe(true));
  expect(await laptop.runner.stop({ threadId, runId: "r1" })).toBe(true);
  await running;
  expect(await phone.runner.getRun("r1", { threadId })).toMatchObject({ status: "stopped" });
});

describe("the list of threads", () => {
  const HOURS_MS = 5 * 3_600_000;
  const shifted = (byMs: number) => ({ clock: { ...systemClock, now: () => systemClock.now() + byMs } });
  const timesOf = async ({ store }: Device, threadId: string): Promise<number[]> => {
    const { createdAt = Infinity, updatedAt = Infinity } = (await store.thread(threadId)) ?? {};
    return [createdAt, updatedAt];
  };

  test.for(["as it goes on", "when it is over"])(
    "does not follow a clock that is ahead (a run that is written down %s)",
    async (when) => {
      const server = new MemoryServer();
      const [phone, laptop] = [device(server, "Phone", shifted(HOURS_MS)), device(server, "Laptop")];
      await inStep(phone, laptop);
      if (when === "when it is over") await sayOffline(phone, "t", "r1", agentOf(counter(1)));
      else await say(phone, "t", "r1", agentOf(counter(1)));
      const isThere = async () =>
        expect(await laptop.runner.getRun("r1", { threadId: "t" })).toMatchObject({ status: "finished" });
      await eventually(isThere);
      for (const time of await timesOf(laptop, "t")) expect(time).toBeLessThanOrEqual(Date.now());
      // The run's own times are as its device says.
      expect((await laptop.runner.getRun("r1", { threadId: "t" }))?.startedAt).toBeGreaterThan(Date.now());
    },
  );

  test("has no thread go down because of a clock that is behind", async () => {
    const server = new MemoryServer();
    const [phone, laptop] = [device(server, "Phone", shifted(-HOURS_MS)), device(server, "Laptop")];
    await inStep(phone, laptop);
    await say(laptop, "t", "r1", agentOf(counter(1)));
    await eventually(async () => expect(await phone.runner.getRun("r1", { threadId: "t" })).toBeDefined());
    const [, before] = await timesOf(laptop, "t");
    await say(phone, "t", "r2", agentOf(counter(1)));
    const isThere = async () =>
      expect(await laptop.runner.getRun("r2", { threadId: "t" })).toMatchObject({ status: "finished" });
    await eventually(isThere);
    expect((await timesOf(laptop, "t"))[1]).toBeGreaterThanOrEqual(before!);
  });
});

test("a run whose device's clock is set back in the middle is on all devices, and is sent once", async () => {
  const server = new MemoryServer();
  let setBack = 0;
  const clock = { ...systemClock, now: () => systemClock.now() - setBack };
  const [phone, laptop] = [device(server, "Phone", { clock }), device(server, "Laptop")];
  await inStep(phone, laptop);
  phone.space.connect(false);
  await say(phone, "t", "r1", agentOf(counter(4, (step) => void (setBack = step >= 2 ? 3_600_000 : 0))));
  phone.space.connect(true);
  await say(phone, "t", "r2", agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  expect(types(server).filter((type) => type === "end")).toHaveLength(2);
});

test("a run that other devices would not understand is left out, once, and what follows is sent", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await say(phone, "t", "r1", agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "finished" } }));
  phone.space.connect(false);
  await say(phone, "t", "r2", agentOf(counter(1)));
  const { chunks } = phone.store;
  // Somebody has changed what is stored.
  vi.spyOn(phone.store, "chunks").mockImplementation(async (threadId, runIndex, ...more) => {
    const read = await chunks.call(phone.store, threadId, runIndex, ...more);
    const damaged = (event: BaseEvent): BaseEvent =>
      event.type === EventType.TEXT_MESSAGE_CONTENT ? ({ ...event, messageId: 7 } as BaseEvent) : event;
    const changed = (chunk: Chunk): Chunk => ({
      ...chunk,
      entries: chunk.entries.map((entry) => ({ ...entry, event: damaged(entry.event) })),
    });
    return runIndex === 1 ? read.map(changed) : read;
  });
  phone.space.connect(true);
  await inStep(phone);
  await say(phone, "other", "o1", agentOf(counter(1)));
  await eventually(async () => expect(await tree(laptop, "other")).toHaveProperty("o1"));
  await say(laptop, "t", "r3", agentOf(counter(1)));
  await eventually(async () => expect(await tree(phone, "t")).toHaveProperty("r3"));
  expect(phone.said.join()).toContain("would not understand");
  expect(types(server).length).toBeLessThan(20);
});
