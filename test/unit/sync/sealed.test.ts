import { EventType, type BaseEvent } from "@ag-ui/client";
import { openDB } from "idb";
import { expect, onTestFinished, test } from "vitest";
import { syncDbName } from "../../../src/platform/names.js";
import { SealedSpace } from "../../../src/sync/sealed/sealed-space.js";
import type { SpaceFrame } from "../../../src/sync/space.js";
import { KEYS_THREAD, keyOfThread } from "../../../src/sync/thread-key.js";
import { isFound } from "../encryption/kit.js";
import { agentOf, collect, counter, fastClock, freshDb, gated, inputOf, user } from "../runner/kit.js";
import {
  device,
  eventually,
  inStep,
  MemoryServer,
  same,
  say,
  sayNow,
  statusOf,
  tree,
  withKey,
  type Device,
} from "./kit.js";
import { flipped, HostileServer, type Injects, type Stored } from "./hostile-server.js";
import { MemorySpace } from "./memory-space.js";

test("devices with one key are in step: runs stream, titles, deletions and what was done offline arrive", async () => {
  const server = new MemoryServer();
  const [phone, laptop, tablet] = ["Phone", "Laptop", "Tablet"].map((name) => device(server, name, withKey())) as [
    Device,
    Device,
    Device,
  ];
  await inStep(phone, laptop, tablet);
  const { gate, letOn } = gated();
  const run = say(phone, "t", "r1", agentOf(counter(10, (step) => (step === 5 ? gate : undefined))));
  await eventually(async () => expect(await laptop.runner.isRunning({ threadId: "t" })).toBe(true));
  await expect(sayNow(laptop, "t", "r2", agentOf(counter(1)))).rejects.toMatchObject({
    code: "thread-busy",
    details: { device: "Phone" },
  });
  letOn();
  await run;
  await same("t", phone, laptop, tablet);
  phone.space.connect(false);
  await say(phone, "t", "p1", agentOf(counter(2)));
  await say(laptop, "t", "l1", agentOf(counter(2)));
  await laptop.runner.updateThread("t", { title: "Named" });
  phone.space.connect(true);
  await eventually(async () => expect(await phone.runner.getThread("t")).toMatchObject({ title: "Named" }));
  await eventually(async () => expect(Object.keys(await tree(tablet, "t"))).toEqual(["l1", "p1", "r1"]));
  await same("t", phone, laptop, tablet);
  await tablet.runner.deleteThread("t");
  await eventually(async () => expect(await phone.runner.getThread("t")).toBeUndefined());
});

test("what the servers and the sync database have says nothing: no text, id, title or name of a device", async () => {
  const server = new MemoryServer();
  const told: Uint8Array[] = [];
  server.told.subscribe((body) => told.push(body));
  const names = [freshDb(), freshDb()];
  const [phone, laptop] = names.map((dbName) => device(server, "PLANTED-device", { dbName, ...withKey() })) as [
    Device,
    Device,
  ];
  await inStep(phone, laptop);
  const { gate, letOn } = gated();
  const agent = agentOf(counter(10, (step) => (step === 5 ? gate : undefined)));
  const run = say(phone, "PLANTED-thread", "PLANTED-run", agent, [user("PLANTED-message")]);
  await eventually(async () => expect(await laptop.runner.isRunning({ threadId: "PLANTED-thread" })).toBe(true));
  await laptop.runner.stop({ threadId: "PLANTED-thread" });
  letOn();
  await run;
  await phone.runner.updateThread("PLANTED-thread", { title: "PLANTED-title" });
  await eventually(async () =>
    expect(await laptop.runner.getThread("PLANTED-thread")).toMatchObject({ title: "PLANTED-title" }),
  );
  const latin = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");
  const all = [...server.entries.flatMap(({ thread, body }) => [thread, latin(body)]), ...told.map(latin)];
  expect(server.entries.length).toBeGreaterThan(5);
  expect(told.length).toBeGreaterThan(1);
  for (const text of all) expect(text).not.toMatch(/PLANTED|device|runId|TEXT_MESSAGE/);
  for (const dbName of names) {
    for (const text of ["PLANTED", "threadId", "lastRun"]) expect(await isFound(syncDbName(dbName), text)).toBe(false);
  }
  // And thread ids cannot be guessed.
  expect(server.entries.map(({ thread }) => thread)).not.toContain(await keyOfThread("PLANTED-thread"));
});

const forged = (message: object): Uint8Array =>
  new TextEncoder().encode(JSON.stringify({ v: 1, device: { id: "x", name: "x" }, threadId: "t", ...message }));

/** What a server puts after each entry: bodies, and whose they are. */
const INJECTED: Readonly<Record<string, Injects>> = {
  "with a bit that is flipped": ({ thread, seq, body }) =>
    [0, 1, 5, 6, 17, 18, 40, body.length - 1, seq * 7].map((at) => [thread, flipped(body, at)]),
  "cut off": ({ thread, body }) =>
    [0, 1, 6, 17, 33, 34, body.length - 1].map((length) => [thread, body.subarray(0, length)]),
  "once more": ({ thread, body }) => [[thread, body]],
  "of before, once more": ({ thread }, all) =>
    // The oldest last.
    all
      .filter((one) => one.thread === thread)
      .map(({ body }): [string, Uint8Array] => [thread, body])
      .toReversed(),
  "in another thread": ({ body }, all) =>
    [...new Set(["elsewhere", ...all.map(({ thread }) => thread)])].map((thread) => [thread, body]),
  "that are plain": ({ thread, seq }) =>
    [
      { type: "deleted", knew: seq },
      { type: "thread", title: "Forged" },
      { type: "claim", runId: "forged" },
    ].map((message) => [thread, forged(message)]),
};

test.each(Object.keys(INJECTED))("entries that a server adds %s are passed over, and harm nobody", async (what) => {
  const server = new HostileServer(INJECTED[what]!);
  const dbName = freshDb();
  const phone = device(server, "Phone", withKey());
  let laptop = device(server, "Laptop", { dbName, ...withKey() });
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(3)));
  await say(phone, "other", "o1", agentOf(counter(3)));
  await phone.runner.updateThread("t", { title: "Named" });
  await same("t", phone, laptop);
  await same("other", phone, laptop);
  await eventually(async () => expect(await laptop.runner.getThread("t")).toMatchObject({ title: "Named" }));
  await phone.runner.updateThread("t", { title: "Named anew" });
  await eventually(async () => expect(await laptop.runner.getThread("t")).toMatchObject({ title: "Named anew" }));
  await say(laptop, "t", "r2", agentOf(counter(3)));
  await laptop.close();
  laptop = device(server, "Laptop", { dbName, ...withKey() });
  await inStep(laptop);
  await say(laptop, "t", "r3", agentOf(counter(3)));
  const tablet = device(server, "Tablet", withKey());
  await inStep(tablet);
  await eventually(async () => {
    expect(await tree(tablet, "t")).toEqual({
      r1: { prev: null, status: "finished" },
      r2: { prev: "r1", status: "finished" },
      r3: { prev: "r2", status: "finished" },
    });
  });
  await same("t", phone, laptop, tablet);
  await same("other", phone, laptop, tablet);
  for (const one of [phone, laptop, tablet]) {
    expect(await one.runner.getThread("t")).toMatchObject({ title: "Named anew" });
  }
  // One warning for each thread that has some.
  const said = phone.said.filter((line) => line.includes("cannot be opened"));
  expect(said.length).toBeLessThanOrEqual(new Set(server.entries.map(({ thread }) => thread)).size);
  for (const one of [phone, tablet]) expect(await one.runner.listRuns("elsewhere")).toEqual([]);
});

test("an entry opens in its thread of its log only, and says after which one it was added", async () => {
  const server = new MemoryServer();
  let kept: unknown;
  const store = { keys: async () => kept, setKeys: async (keys: unknown) => void (kept = keys) };
  const parts = { name: "", ...withKey(), store, logger: { warn: () => undefined }, makeId: () => `${Math.random()}` };
  const space = new SealedSpace({ space: new MemorySpace(server), ...parts });
  onTestFinished(() => space.close());
  const frames: SpaceFrame[] = [];
  const until = new AbortController();
  const reading = (async () => {
    for await (const frame of space.read(undefined, until.signal)) frames.push(frame);
  })();
  const readTo = (count: number) => eventually(() => expect(frames).toHaveLength(count));
  const body = new TextEncoder().encode("an entry");
  await readTo(2);
  await space.add("a", body, { last: 0, id: "1" });
  await space.add("a", body, { last: 2, id: "2" });
  const [keys, first] = server.entries;
  server.add("b", first!.body, 0, "3");
  await readTo(5);
  const nothing = new Uint8Array();
  expect(frames.slice(2)).toEqual([
    { is: "entry", thread: "a", seq: 2, body, after: 0 },
    { is: "entry", thread: "a", seq: 3, body, after: 2 },
    { is: "entry", thread: "b", seq: 4, body: nothing },
  ]);
  server.lose();
  server.add(KEYS_THREAD, keys!.body, 0, "4");
  server.add("a", first!.body, 0, "5");
  await readTo(8);
  expect(frames.slice(5)).toEqual([
    expect.objectContaining({ is: "begins" }),
    { is: "entry", thread: KEYS_THREAD, seq: 1, body: nothing },
    { is: "entry", thread: "a", seq: 2, body: nothing },
  ]);
  until.abort();
  await reading;
});

/** Changes some entries before anybody has read them. */
class ChangingServer extends MemoryServer {
  private count = 0;

  /** @param which of four entries is changed */
  constructor(
    private readonly changes: (server: MemoryServer, entry: Stored) => void,
    private readonly which: number,
  ) {
    super();
  }

  override add(thread: string, body: Uint8Array, last: number, id: string): number | undefined {
    const count = this.entries.length;
    const seq = super.add(thread, body, last, id);
    const isNew = seq !== undefined && this.entries.length > count && thread !== KEYS_THREAD;
    if (isNew && ++this.count % 4 === this.which) {
      if (this.count <= 20) this.changes(this, this.entries.at(-1)!);
    }
    return seq;
  }
}

const put = (server: MemoryServer, { seq }: Stored, body: Uint8Array): void => {
  server.entries[seq - 1] = { ...server.entries[seq - 1]!, body };
};

const swap = (server: MemoryServer, entry: Stored): void => {
  const before = server.entries.findLast(({ thread, seq }) => thread === entry.thread && seq < entry.seq);
  if (before === undefined) return;
  put(server, entry, before.body);
  put(server, before, entry.body);
};

test.each<[string, (server: MemoryServer, entry: Stored) => void, number]>([
  ["flips a bit of them", (server, entry) => put(server, entry, flipped(entry.body, 30)), 0],
  ["cuts them off", (server, entry) => put(server, entry, entry.body.subarray(0, 40)), 0],
  // Of the one before, its writer may have read that it is there.
  ...[0, 1, 2, 3].map((which): [string, typeof swap, number] => [
    `swaps them with those before (${which})`,
    swap,
    which,
  ]),
])("a server that %s as they are added: all devices come to the same", async (_, changes, which) => {
  const server = new ChangingServer(changes, which);
  const clock = { clock: fastClock(20) };
  const phone = device(server, "Phone", { ...withKey(), ...clock });
  const laptop = device(server, "Laptop", { ...withKey(), ...clock });
  await inStep(phone, laptop);
  for (let n = 0; n < 4; n++) {
    await eventually(async () => {
      await Promise.resolve().then(() => say(n % 2 === 0 ? phone : laptop, "t", `r${n}`, agentOf(counter(5))));
    });
    await same("t", phone, laptop);
  }
  await phone.runner.updateThread("t", { title: "Named" });
  await eventually(async () => expect(await laptop.runner.getThread("t")).toMatchObject({ title: "Named" }));
  const tablet = device(server, "Tablet", { ...withKey(), ...clock });
  await inStep(tablet);
  await same("t", phone, laptop, tablet);
  expect(Object.keys(await tree(tablet, "t"))).toEqual(["r0", "r1", "r2", "r3"]);
});

/** Changes the next entry, once it is told to. */
class OnceServer extends MemoryServer {
  changesNext = false;

  override add(thread: string, body: Uint8Array, last: number, id: string): number | undefined {
    const seq = super.add(thread, body, last, id);
    if (this.changesNext && seq === this.entries.length) put(this, this.entries.at(-1)!, flipped(body, 30));
    this.changesNext = false;
    return seq;
  }
}

test.each(["taken up another branch", "deleted the thread"])(
  "a server changes the entry that says that somebody has %s: it is told once more",
  async (what) => {
    const server = new OnceServer();
    const phone = device(server, "Phone", withKey());
    const laptop = device(server, "Laptop", { ...withKey(), clock: fastClock(10) });
    await inStep(phone, laptop);
    await say(phone, "t", "r1", agentOf(counter(1)));
    await same("t", phone, laptop);
    phone.space.connect(false);
    await say(phone, "t", "p1", agentOf(counter(1)));
    await say(laptop, "t", "l1", agentOf(counter(1)));
    await eventually(async () => expect((await statusOf(laptop)).isCurrent).toBe(true));
    phone.space.connect(true);
    await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toEqual(["l1", "p1", "r1"]));
    await same("t", phone, laptop);
    server.changesNext = true;
    if (what.startsWith("deleted")) {
      await laptop.runner.deleteThread("t");
      for (const one of [phone, laptop]) {
        await eventually(async () => expect(await one.runner.getThread("t")).toBeUndefined());
      }
    } else {
      const { active, beside } = await branchesOf(phone);
      await laptop.runner.activateRun("t", beside);
      for (const one of [phone, laptop]) {
        await eventually(async () => expect(await branchesOf(one)).toEqual({ active: beside, beside: active }));
      }
    }
    expect(server.changesNext).toBe(false);
    expect(laptop.said).toEqual(expect.arrayContaining([expect.stringContaining("it is sent again")]));
  },
);

test("a device that reads a thread again counts what says nothing there: what comes behind it still counts", async () => {
  const server = new OnceServer();
  const phone = device(server, "Phone", { ...withKey(), clock: fastClock(2) });
  const laptop = device(server, "Laptop", withKey());
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(1)));
  await same("t", phone, laptop);
  await inStep(laptop);
  const { gate, letOn } = gated();
  const live = agentOf(async function* ({ runId }) {
    yield { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" };
    await gate;
  });
  const run = say(laptop, "t", "l1", live);
  await eventually(async () => expect(await phone.runner.isRunning({ threadId: "t" })).toBe(true));
  const events: BaseEvent[] = [];
  const reading = phone.runner.connect({ threadId: "t" }).subscribe((event) => events.push(event));
  await eventually(() => expect(events.at(-1)).toMatchObject({ type: "TEXT_MESSAGE_START", messageId: "l1-a" }));
  reading.unsubscribe();
  // Between its events and its end.
  const entry = server.entries.at(-1)!;
  server.add(entry.thread, flipped(entry.body, 30), entry.seq, "hostile");
  letOn();
  await run;
  await eventually(async () => expect(await tree(phone, "t")).toMatchObject({ l1: { status: "finished" } }));
  server.changesNext = true;
  await phone.runner.updateThread("t", { title: "Named" });
  await eventually(async () => expect(await laptop.runner.getThread("t")).toMatchObject({ title: "Named" }));
  expect(phone.said).toEqual(expect.arrayContaining([expect.stringContaining("it is sent again")]));
  // It does not take that run for a live one.
  await say(phone, "t", "r2", agentOf(counter(1)));
  await same("t", phone, laptop);
});

/** Which of two branches is shown. */
async function branchesOf({ runner }: Device): Promise<{ active: string; beside: string }> {
  const ids = (await runner.getThreadMessages("t")).map(({ id }) => id);
  return ids.includes("p1-a") ? { active: "p1", beside: "l1" } : { active: "l1", beside: "p1" };
}

test("what others tell without the key is not heard", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  await inStep(phone);
  const { gate, letOn } = gated();
  const run = say(phone, "t", "r1", agentOf(counter(4, (step) => (step === 2 ? gate : undefined))));
  await eventually(async () => expect(await phone.runner.isRunning({ threadId: "t" })).toBe(true));
  const { id } = (await statusOf(phone)).devices[0]!;
  const text = (told: object): Uint8Array => new TextEncoder().encode(JSON.stringify(told));
  server.told.next(text({ type: "stop", to: id, threadId: "t", runId: "r1" }));
  server.told.next(text({ type: "here", device: { id: "forged", name: "Forged" } }));
  // Behind them, something that is heard.
  const laptop = device(server, "Laptop", withKey());
  await eventually(async () => expect((await statusOf(phone)).devices).toHaveLength(2));
  expect((await statusOf(phone)).devices[1]).toMatchObject({ name: "Laptop" });
  letOn();
  await run;
  await same("t", phone, laptop);
  expect(await tree(phone, "t")).toEqual({ r1: { prev: null, status: "finished" } });
});

test("a database that was plain, and is encrypted now, shares its threads in a new space", async () => {
  const [plain, sealed] = [new MemoryServer(), new MemoryServer()];
  sealed.log = "another";
  const [dbName, other] = [freshDb(), freshDb()];
  const before = device(plain, "Phone", { dbName });
  const friend = device(plain, "Friend", { dbName: other });
  await inStep(before, friend);
  await say(before, "PLANTED", "r1", agentOf(counter(2)));
  await say(friend, "PLANTED-too", "r2", agentOf(counter(2)));
  await same("PLANTED", before, friend);
  await same("PLANTED-too", before, friend);
  for (const one of [before, friend]) await one.close();
  expect(await isFound(syncDbName(dbName), "PLANTED")).toBe(true);
  const phone = device(sealed, "Phone", { dbName, ...withKey() });
  phone.space.connect(false);
  await eventually(async () => expect(await isFound(syncDbName(dbName), "PLANTED")).toBe(false));
  phone.space.connect(true);
  await inStep(phone);
  const tablet = device(sealed, "Tablet", withKey());
  // Those of others, too: it has nobody else to get them from.
  for (const threadId of ["PLANTED", "PLANTED-too"]) {
    await eventually(async () => expect(Object.keys(await tree(tablet, threadId))).toHaveLength(1));
    await same(threadId, phone, tablet);
  }
  expect(await isFound(syncDbName(dbName), "PLANTED")).toBe(false);
});

test("a run has one fingerprint on all devices, whoever sends it", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  const laptop = device(server, "Laptop", withKey());
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(2)));
  await same("t", phone, laptop);
  const printOf = async ({ runner }: Device) => {
    const { parts } = runner.joinDevices();
    parts.channel.close();
    return (await parts.store.runById("t", "r1"))?.fingerprint;
  };
  const print = await printOf(phone);
  expect(print).toMatch(/^[0-9a-f]{32}$/);
  expect(await printOf(laptop)).toBe(print);
  await phone.close();
  server.lose();
  const tablet = device(server, "Tablet", withKey());
  await eventually(async () => expect(await printOf(tablet)).toBe(print));
});

test("an answer under the id of the run that asked goes on where it was broken off, and is one run", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  const laptop = device(server, "Laptop", { clock: fastClock(10), ...withKey() });
  await inStep(phone, laptop);
  const asks = agentOf(async function* ({ threadId, runId }) {
    const interrupts = [{ id: "i", reason: "confirm" }];
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } };
  });
  await say(phone, "t", "r", asks);
  await eventually(async () => expect(await laptop.runner.listRuns("t")).toHaveLength(1));
  const [first, second] = [gated(), gated()];
  const answers = agentOf(counter(6, (step) => (step === 2 ? first.gate : step === 4 ? second.gate : undefined)));
  const input = { ...inputOf("t", "r", [user("r-u2")]), resume: [{ interruptId: "i", status: "resolved" as const }] };
  const run = collect(phone.runner.run({ threadId: "t", agent: answers, input }));
  const statuses = async ({ runner }: Device) => (await runner.listRuns("t")).map(({ status }) => status);
  await eventually(async () => expect(await statuses(laptop)).toEqual(["running", "finished"]));
  phone.space.connect(false);
  await eventually(async () => expect(await statuses(laptop)).toEqual(["broken", "finished"]));
  first.letOn();
  phone.space.connect(true);
  await eventually(async () => expect(await statuses(laptop)).toEqual(["running", "finished"]));
  second.letOn();
  await run;
  for (const one of [laptop, phone]) {
    await eventually(async () => expect(await statuses(one)).toEqual(["finished", "finished"]));
  }
  await same("t", laptop, phone);
});

test("an entry that nobody can open, first in a log that was made anew, does not end the space", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  await inStep(phone);
  await say(phone, "t", "r1", agentOf(counter(2)));
  await eventually(() => expect(server.entries.length).toBeGreaterThan(4));
  const stale = server.entries.at(-1)!;
  phone.space.connect(false);
  server.lose();
  server.add(stale.thread, stale.body, 0, "of a device that has not noticed");
  phone.space.connect(true);
  const tablet = device(server, "Tablet", withKey());
  await eventually(async () => expect(Object.keys(await tree(tablet, "t"))).toEqual(["r1"]));
  await same("t", phone, tablet);
});

test("records of the sync database that somebody has changed cost a new look, and nothing else", async () => {
  const server = new MemoryServer();
  const dbName = freshDb();
  let phone = device(server, "Phone", { dbName, ...withKey() });
  const laptop = device(server, "Laptop", withKey());
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(2)));
  await same("t", phone, laptop);
  await phone.close();
  const db = await openDB(syncDbName(dbName));
  for (const record of (await db.getAll("threads")) as { key: string; sealed: Uint8Array }[]) {
    await db.put("threads", { ...record, sealed: flipped(record.sealed, 40) });
  }
  await db.put("meta", flipped((await db.get("meta", "keys")) as Uint8Array, 40), "keys");
  db.close();
  await say(laptop, "t", "r2", agentOf(counter(2)));
  phone = device(server, "Phone", { dbName, ...withKey() });
  await eventually(async () => expect(Object.keys(await tree(phone, "t"))).toEqual(["r1", "r2"]));
  await same("t", phone, laptop);
  await inStep(phone);
  await say(phone, "t", "r3", agentOf(counter(2)));
  await eventually(async () => expect(Object.keys(await tree(laptop, "t"))).toContain("r3"));
  await same("t", phone, laptop);
  expect(Object.keys(await tree(laptop, "t"))).toEqual(["r1", "r2", "r3"]);
});

test("an entry that somebody adds again says nothing of a thread that is listed only", async () => {
  const server = new MemoryServer();
  const laptop = device(server, "Laptop", withKey());
  const phone = device(server, "Phone", { ...withKey(), keep: "opened" });
  await inStep(laptop, phone);
  await say(laptop, "t", "r1", agentOf(counter(2)));
  const listed = (title: string) =>
    eventually(async () => expect(await phone.runner.getThread("t")).toMatchObject({ title }));
  for (const title of ["Old", "New"]) {
    await laptop.runner.updateThread("t", { title });
    await listed(title);
  }
  const old = server.entries.at(-2)!;
  server.add(old.thread, old.body, server.last, "again");
  await say(laptop, "u", "r2", agentOf(counter(2)));
  await eventually(async () => expect(await phone.runner.getThread("u")).toMatchObject({ lastStatus: "finished" }));
  expect(await phone.runner.getThread("t")).toMatchObject({ title: "New" });
});
