import { from, NEVER, switchMap } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { decodeMessage, encodeMessage, type SpaceMessage } from "../../../src/sync/messages.js";
import { SpaceOffline } from "../../../src/sync/space.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { fastKey } from "../encryption/fast-key.js";
import { agentOf, counter, freshDb, fullDisk, gated, rawAgent, inputOf } from "../runner/kit.js";
import { watchTransactions } from "../storage/idb-spy.js";
import {
  device,
  eventually,
  inStep,
  makeDevice,
  MemoryServer,
  say,
  shown,
  statusOf,
  tree,
  types,
  withKey,
  type Device,
  same,
} from "./kit.js";

/*
 * A device that is new in a space, where entries do not say how their thread is listed, or lie; and where what comes cannot
 * be written down.
 */

const ghost = { id: "ghost", name: "Ghost" };

async function add(server: MemoryServer, message: SpaceMessage): Promise<void> {
  const thread = await keyOfThread(message.threadId);
  const last = server.entries.findLast((entry) => entry.thread === thread)?.seq ?? 0;
  expect(server.add(thread, encodeMessage(message), last, `${thread}-${last}`)).toBeDefined();
}

const claim = (server: MemoryServer, threadId: string): Promise<void> =>
  add(server, { type: "claim", threadId, runId: "never", device: ghost });

/** Devices of an older build do not say how a thread is listed. */
function withoutBriefs(server: MemoryServer): void {
  server.entries = server.entries.map((entry) => {
    const message = decodeMessage(entry.body);
    if (typeof message !== "object" || !("brief" in message)) return entry;
    const { brief: _brief, ...rest } = message;
    return { ...entry, body: encodeMessage(rest) };
  });
}

async function filled(count: number) {
  const server = new MemoryServer();
  const first = device(server, "First");
  await inStep(first);
  for (let n = 0; n < count; n++) await say(first, `t${n}`, `t${n}-r1`, agentOf(counter(3)));
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(count));
  await eventually(async () => expect((await statusOf(first)).isCurrent).toBe(true));
  return { server, first };
}

const listed = async ({ runner }: Pick<Device, "runner">): Promise<string[]> =>
  (await runner.listThreads()).map(({ threadId }) => threadId).toSorted();

const absent = async ({ runner }: Pick<Device, "runner">): Promise<string[]> =>
  (await runner.listThreads()).flatMap((one) => (one.absent ? [one.threadId] : [])).toSorted();

/** Until the returned function is called, no thread can be read. */
function holdEntries({ space }: Device): () => void {
  const reads = vi.spyOn(space, "entries").mockImplementation(async function* () {
    yield* [];
    throw new SpaceOffline();
  });
  return () => reads.mockRestore();
}

test.each(["all", "opened"] as const)(
  "a thread whose last entry does not say how it is listed is not forgotten over a restart (keep: %s)",
  async (keep) => {
    const { server } = await filled(2);
    await claim(server, "t0");
    const dbName = freshDb();
    const before = makeDevice(server, "Phone", { dbName, keep });
    holdEntries(before);
    await eventually(async () => expect(await listed(before)).toEqual(["t1"]));
    await inStep(before);
    await before.close();
    const phone = device(server, "Phone", { dbName, keep });
    await eventually(async () => expect(await listed(phone)).toEqual(["t0", "t1"]));
    await eventually(async () => expect((await statusOf(phone)).toCome).toBeUndefined());
    expect(await absent(phone)).toEqual(keep === "all" ? [] : ["t1"]);
  },
);

test("a deletion that is a lie takes no thread away for long", async () => {
  const { server, first } = await filled(2);
  const lie = (threadId: string): Promise<void> =>
    add(server, { type: "deleted", threadId, knew: 0, counts: true, device: ghost });
  await lie("t0");
  const phone = device(server, "Phone");
  const letOn = holdEntries(phone);
  await eventually(async () => expect(await absent(phone)).toEqual(["t1"]));
  await inStep(phone);
  await lie("t1");
  letOn();
  await eventually(async () => expect(await listed(phone)).toEqual(["t0", "t1"]));
  await same("t0", phone, first);
  await eventually(async () => expect((await statusOf(phone)).toCome).toBeUndefined());
});

test("a deletion that is none comes to nothing in the end, and is not asked for again", async () => {
  const { server, first } = await filled(2);
  await first.runner.deleteThread("t0");
  await eventually(() => expect(types(server)).toContain("deleted"));
  const phone = device(server, "Phone");
  await eventually(async () => expect(await listed(phone)).toEqual(["t1"]));
  await eventually(async () => expect(await absent(phone)).toEqual([]));
  await eventually(async () => expect((await statusOf(phone)).toCome).toBeUndefined());
  const reads = vi.spyOn(phone.space, "entries");
  await say(first, "t1", "t1-r2", agentOf(counter(1)));
  await eventually(async () => expect(await tree(phone, "t1")).toEqual(await tree(first, "t1")));
  expect(reads).not.toHaveBeenCalled();
});

test("a thread that is opened and deleted while the list still comes stays deleted", async () => {
  const { server, first } = await filled(3);
  const phone = device(server, "Phone", { keep: "opened" });
  // A server that does not have the last entries yet: the list is read again.
  const { lasts } = phone.space;
  const { gate, letOn } = gated();
  let times = 0;
  vi.spyOn(phone.space, "lasts").mockImplementation(async function* (signal) {
    const isFirst = ++times === 1;
    if (!isFirst) await gate;
    let all = 0;
    for await (const entry of lasts.call(phone.space, signal)) if (!isFirst || ++all < 3) yield entry;
  });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0", "t1"]));
  await same("t0", phone, first);
  expect(await phone.runner.deleteThread("t0")).toBe(true);
  letOn();
  await eventually(async () => expect(await absent(phone)).toEqual(["t1", "t2"]));
  expect(times).toBe(2);
  await eventually(async () => expect(await listed(first)).toEqual(["t1", "t2"]));
  expect(await listed(phone)).toEqual(["t1", "t2"]);
});

test("a thread that was read before the list came again is read on, with nothing lost", async () => {
  const { server, first } = await filled(3);
  const phone = device(server, "Phone", { keep: "opened" });
  const { lasts } = phone.space;
  const { gate, letOn } = gated();
  let times = 0;
  vi.spyOn(phone.space, "lasts").mockImplementation(async function* (signal) {
    const isFirst = ++times === 1;
    if (!isFirst) await gate;
    let all = 0;
    for await (const entry of lasts.call(phone.space, signal)) if (!isFirst || ++all < 3) yield entry;
  });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0", "t1"]));
  await same("t0", phone, first);
  await say(first, "t0", "t0-r2", agentOf(counter(2)));
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(4));
  // The place of the phone is behind all that.
  phone.space.connect(false);
  phone.space.connect(true);
  letOn();
  await eventually(async () => expect(await tree(phone, "t0")).toEqual(await tree(first, "t0")));
  await same("t0", phone, first);
});

test("a thread that begins with a run of which nothing came stays in the list, and keeps no reader waiting", async () => {
  const { server, first } = await filled(1);
  const { gate, letOn } = gated();
  const silent = rawAgent(() => from(gate).pipe(switchMap(() => NEVER)));
  const running = first.runner.run({ threadId: "new", agent: silent, input: inputOf("new", "n1") }).subscribe();
  await eventually(async () => {
    const key = await keyOfThread("new");
    expect(server.entries.some(({ thread }) => thread === key)).toBe(true);
  });
  const key = await keyOfThread("new");
  // What came of it is cut off: as if its device had become silent.
  await eventually(() => expect(server.entries.filter(({ thread }) => thread === key).length).toBeGreaterThan(1));
  const phone = device(server, "Phone", { keep: "opened" });
  const isEvents = ({ thread, body }: { thread: string; body: Uint8Array }): boolean => {
    const message = decodeMessage(body);
    return thread === key && typeof message === "object" && message.type === "events";
  };
  const { entries } = phone.space;
  const cut = vi.spyOn(phone.space, "entries").mockImplementation(async function* (thread, signal) {
    for await (const entry of entries.call(phone.space, thread, signal)) if (!isEvents(entry)) yield entry;
  });
  await eventually(async () => expect(await listed(phone)).toContain("new"));
  expect(await phone.runner.getThreadMessages("new")).toEqual([]);
  expect(await listed(phone)).toContain("new");
  cut.mockRestore();
  letOn();
  running.unsubscribe();
});

test("a thread that cannot be written down says why to whoever opens it, and comes when it can be", async () => {
  const { server, first } = await filled(2);
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0", "t1"]));
  await inStep(phone);
  const end = fullDisk();
  await expect(shown(phone, "t0")).rejects.toMatchObject({ code: "quota-exceeded" });
  end();
  await eventually(async () => expect(await shown(phone, "t0")).toEqual(await shown(first, "t0")));
});

test("a device that keeps what is opened goes on where it was", async () => {
  const { server, first } = await filled(2);
  const dbName = freshDb();
  const before = makeDevice(server, "Phone", { dbName, keep: "opened" });
  await eventually(async () => expect(await absent(before)).toHaveLength(2));
  for (let n = 2; n < 6; n++) await say(first, "t0", `t0-r${n}`, agentOf(counter(3)));
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(6));
  const isRead = vi.fn();
  before.sync.status$.subscribe(isRead);
  await inStep(before);
  await eventually(async () => {
    const { place } = await placeOf(dbName);
    expect(place).toBe(server.entries.length);
  });
  await before.close();
});

async function placeOf(dbName: string): Promise<{ readonly place: number | undefined }> {
  const { SyncDatabase } = await import("../../../src/sync/sync-database.js");
  const database = new SyncDatabase(dbName, systemClock);
  const place = (await database.get("place"))?.seq;
  await database.close();
  return { place };
}

test("threads that only the rest of their entries can list are read a few at a time", async () => {
  const { server, first } = await filled(20);
  withoutBriefs(server);
  const phone = device(server, "Phone", { keep: "opened" });
  const { entries } = phone.space;
  let now = 0;
  let most = 0;
  vi.spyOn(phone.space, "entries").mockImplementation(async function* (thread, signal) {
    most = Math.max(most, ++now);
    yield* entries.call(phone.space, thread, signal);
    now--;
  });
  await eventually(async () => expect(await listed(phone)).toEqual(await listed(first)));
  expect(most).toBeLessThanOrEqual(4);
});

test("a new thread of a device that does not say how it is listed is listed", async () => {
  const { server, first } = await filled(1);
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0"]));
  await inStep(phone);
  const adds = server.add.bind(server);
  vi.spyOn(server, "add").mockImplementation((thread, body, last, id) => {
    const message = decodeMessage(body);
    if (typeof message !== "object" || !("brief" in message)) return adds(thread, body, last, id);
    const { brief: _brief, ...rest } = message;
    return adds(thread, encodeMessage(rest), last, id);
  });
  await say(first, "new", "new-r1", agentOf(counter(2)));
  await eventually(async () => expect(await listed(phone)).toEqual(["new", "t0"]));
});

test("in a locked database that is kept in step threads can be deleted", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  const before = makeDevice(server, "Laptop", { dbName, encryption: new Encryption({ key: fastKey }) });
  await inStep(before);
  for (const threadId of ["t0", "t1"]) await say(before, threadId, `${threadId}-r1`, agentOf(counter(1)));
  await before.close();
  const encryption = new Encryption();
  const laptop = device(server, "Laptop", { dbName, encryption });
  await expect(laptop.runner.getThreadMessages("t0")).rejects.toMatchObject({ code: "locked" });
  expect(await laptop.runner.deleteThread("t0")).toBe(true);
  await encryption.unlock(fastKey);
  const other = device(server, "Other", { encryption: new Encryption({ key: fastKey }) });
  await eventually(async () => expect(await listed(other)).toEqual(["t1"]));
  expect(await listed(laptop)).toEqual(["t1"]);
});

test("in a locked database a thread that has not come cannot be deleted", async () => {
  const server = new MemoryServer();
  const first = device(server, "First", { encryption: new Encryption({ key: fastKey }) });
  await inStep(first);
  await say(first, "t0", "r1", agentOf(counter(1)));
  await eventually(() => expect(server.entries.length).toBeGreaterThanOrEqual(4));
  const encryption = new Encryption({ key: fastKey });
  const phone = device(server, "Phone", { encryption, keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0"]));
  await encryption.lock();
  await expect(phone.runner.deleteThread("t0")).rejects.toMatchObject({ code: "locked" });
});

test("times that lie do not stand above the list for ever, nor break its pages", async () => {
  const { server } = await filled(2);
  const brief = { title: "A lie", archived: false, pinned: false, createdAt: 1, updatedAt: 9e14 };
  const release = { type: "release", runId: "x", device: ghost } as const;
  await add(server, { ...release, threadId: "t0", brief });
  await add(server, { ...release, threadId: "t1", brief: { ...brief, updatedAt: 1e300 } });
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await listed(phone)).toEqual(["t0", "t1"]));
  const rows = await phone.runner.listThreads();
  for (const { updatedAt } of rows) expect(updatedAt).toBeLessThanOrEqual(Date.now());
  // The second says nothing.
  expect(rows.find(({ threadId }) => threadId === "t1")?.title).not.toBe("A lie");
});

test("a thread that is not here cannot be opened offline where the keys of the space are not known, and nobody waits (L13)", async () => {
  const server = new MemoryServer();
  const first = device(server, "First", withKey());
  await inStep(first);
  await say(first, "t", "r1", agentOf(counter(1)));
  const dbName = freshDb();
  const before = makeDevice(server, "Phone", { dbName, keep: "opened", ...withKey() });
  await eventually(async () => expect(await absent(before)).toEqual(["t"]));
  await inStep(before);
  await before.database.setKeys(undefined);
  await before.close();
  const phone = makeDevice(server, "Phone", { dbName, keep: "opened", ...withKey() });
  phone.space.connect(false);
  onTestFinished(phone.close);
  await expect(phone.runner.getThreadMessages("t")).rejects.toMatchObject({ code: "offline" });
});

test("what is listed survives a power failure: that it was read is written down behind it (L8)", async () => {
  const { server } = await filled(1);
  const dbName = freshDb();
  const seen = watchTransactions();
  const phone = device(server, "Phone", { dbName, keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0"]));
  const writes = seen.filter(
    ({ db, mode, stores }) => db === dbName && mode === "readwrite" && stores.includes("threads"),
  );
  expect(writes.map(({ durability }) => durability)).toEqual(["strict"]);
});
