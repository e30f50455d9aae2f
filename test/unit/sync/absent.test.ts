import { deleteDB } from "idb";
import { lastValueFrom, toArray } from "rxjs";
import { expect, test, vi } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { decodeMessage, encodeMessage } from "../../../src/sync/messages.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { fastKey } from "../encryption/fast-key.js";
import { agentOf, counter, freshDb, gated, inputOf, makeRunner } from "../runner/kit.js";
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
  type Device,
  same,
} from "./kit.js";

/*
 * A device that is new in a space: first the list, then a thread when it is opened, the rest in the background or never.
 */

/** A space with threads `t0` to `t<count-1>`, of two runs each, `t0` renamed, `t1` archived. */
async function filled(count = 3) {
  const server = new MemoryServer();
  const first = device(server, "First");
  await inStep(first);
  for (let n = 0; n < count; n++) {
    await say(first, `t${n}`, `t${n}-r1`, agentOf(counter(3)));
    await say(first, `t${n}`, `t${n}-r2`, agentOf(counter(3)));
  }
  await first.runner.updateThread("t0", { title: "Renamed" });
  if (count > 1) await first.runner.updateThread("t1", { archived: true });
  await eventually(() => expect(types(server).filter((type) => type === "end")).toHaveLength(2 * count));
  await eventually(() => expect(types(server).filter((type) => type === "thread")).toHaveLength(count > 1 ? 2 : 1));
  return { server, first };
}

/** The list, without what each device gives it itself. */
async function list({ runner }: Pick<Device, "runner">) {
  const both = await Promise.all([false, true].map((archived) => runner.listThreads({ archived })));
  return both
    .flat()
    .map(({ threadId, title, archived, pinned, updatedAt, lastStatus }) => {
      return { threadId, title, archived, pinned, updatedAt, lastStatus };
    })
    .toSorted((one, other) => (one.threadId < other.threadId ? -1 : 1));
}

async function absent({ runner }: Pick<Device, "runner">): Promise<string[]> {
  const both = await Promise.all([false, true].map((archived) => runner.listThreads({ archived })));
  return both.flatMap((threads) => threads.flatMap((one) => (one.absent ? [one.threadId] : []))).toSorted();
}

test("the list is there before any thread, and each thread comes when somebody opens it, with nothing lost", async () => {
  const { server, first } = await filled();
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await list(phone)).toEqual(await list(first)));
  expect(await absent(phone)).toEqual(["t0", "t1", "t2"]);
  await same("t0", phone, first);
  expect(await absent(phone)).toEqual(["t1", "t2"]);
  expect(await list(phone)).toEqual(await list(first));
  expect((await statusOf(phone)).toCome).toBeUndefined();
});

test("a reader that connects to an absent thread gets all of it, and follows it from then on", async () => {
  const { server, first } = await filled(1);
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0"]));
  const events = await lastValueFrom(phone.runner.connect({ threadId: "t0" }).pipe(toArray()));
  expect(events.filter(({ type }) => type === "RUN_FINISHED")).not.toHaveLength(0);
  await say(first, "t0", "t0-r3", agentOf(counter(2)));
  await eventually(async () => expect(await tree(phone, "t0")).toEqual(await tree(first, "t0")));
});

test("all threads come in the background, and the status says how many are left", async () => {
  const { server, first } = await filled(5);
  const phone = device(server, "Phone");
  const left: (number | undefined)[] = [];
  phone.sync.status$.subscribe(({ toCome }) => left.push(toCome));
  await eventually(async () => expect(await phone.runner.listThreads({ archived: true })).toHaveLength(1));
  await eventually(async () => expect(await absent(phone)).toEqual([]));
  await eventually(async () => expect((await statusOf(phone)).toCome).toBeUndefined());
  expect(left).toContain(5);
  expect(await list(phone)).toEqual(await list(first));
  for (const threadId of ["t0", "t1", "t2", "t3", "t4"]) {
    expect(await shown(phone, threadId)).toEqual(await shown(first, threadId));
  }
  // Nothing came back, nor was anything taken for a change made here.
  expect(types(server).filter((type) => type === "thread")).toHaveLength(2);
});

test("what others change of threads that are not here is seen in the list: new, renamed, archived, deleted", async () => {
  const { server, first } = await filled();
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toHaveLength(3));
  await first.runner.updateThread("t2", { title: "Later", pinned: true });
  await first.runner.deleteThread("t0");
  await say(first, "new", "new-r1", agentOf(counter(2)));
  await eventually(async () => expect(await list(phone)).toEqual(await list(first)));
  expect(await absent(phone)).toEqual(["new", "t1", "t2"]);
  expect(await phone.runner.getThread("t0")).toBeUndefined();
});

test("an absent thread that is opened offline says so, and comes when there is a connection", async () => {
  const { server, first } = await filled(1);
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0"]));
  phone.space.connect(false);
  await expect(shown(phone, "t0")).rejects.toMatchObject({ code: "offline" });
  await expect(say(phone, "t0", "p1", agentOf(counter(1)))).rejects.toMatchObject({ code: "offline" });
  await expect(phone.runner.deleteThread("t0")).rejects.toMatchObject({ code: "offline" });
  expect(await absent(phone)).toEqual(["t0"]);
  phone.space.connect(true);
  await eventually(async () => expect(await tree(phone, "t0")).toEqual(await tree(first, "t0")));
});

test("a device that is locked while a thread comes says that it is not here, and does not show it empty", async () => {
  const { server } = await filled(1);
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0"]));
  const reads = vi.spyOn(phone.space, "entries").mockImplementation(async function* (_, signal) {
    await systemClock.after(Infinity, signal);
    yield* [];
  });
  const opening = phone.runner.getThreadMessages("t0");
  opening.catch(() => undefined);
  await eventually(() => expect(reads).toHaveBeenCalled());
  await phone.sync.close();
  await expect(opening).rejects.toMatchObject({ code: "offline" });
  phone.runner.awaitDevices(Promise.resolve());
  await expect(phone.runner.getThreadMessages("t0")).rejects.toMatchObject({ code: "offline" });
});

test("a run in an absent thread continues it", async () => {
  const { server, first } = await filled(1);
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0"]));
  await say(phone, "t0", "p1", agentOf(counter(2)));
  expect(await tree(phone, "t0")).toMatchObject({ p1: { prev: "t0-r2", status: "finished" } });
  await eventually(async () => expect(await tree(first, "t0")).toEqual(await tree(phone, "t0")));
});

test("an absent thread is renamed and deleted as any other, on all devices", async () => {
  const { server, first } = await filled(2);
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toHaveLength(2));
  await phone.runner.updateThread("t0", { title: "By the phone" });
  expect(await phone.runner.deleteThread("t1")).toBe(true);
  await eventually(async () => {
    expect((await first.runner.getThread("t0"))?.title).toBe("By the phone");
    expect(await first.runner.getThread("t1")).toBeUndefined();
  });
  expect(await list(phone)).toEqual(await list(first));
});

test("all threads are deleted, absent ones too", async () => {
  const { server, first } = await filled();
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toHaveLength(3));
  expect(await phone.runner.clearThreads()).toBe(3);
  await eventually(async () => expect(await list(first)).toEqual([]));
});

test("a live run of another device is seen in a thread that is opened in the middle", async () => {
  const { server, first } = await filled(1);
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0"]));
  const { gate, letOn } = gated();
  const run = say(first, "t0", "live", agentOf(counter(5, (n) => (n === 2 ? gate : undefined))));
  await eventually(() => expect(types(server)).toContain("events"));
  await phone.runner.listRuns("t0");
  await eventually(async () => expect(await phone.runner.isRunning({ threadId: "t0" })).toBe(true));
  letOn();
  await run;
  await eventually(async () => expect(await shown(phone, "t0")).toEqual(await shown(first, "t0")));
});

test("a device that ends in the middle goes on where it was, with the list and with the threads", async () => {
  const { server, first } = await filled(6);
  const dbName = freshDb();
  for (const ends of ["at once", "with the list", "in the background"]) {
    const phone = makeDevice(server, "Phone", { dbName });
    if (ends === "with the list") await eventually(async () => expect(await list(phone)).toHaveLength(6));
    if (ends === "in the background") await eventually(async () => expect(await absent(phone)).not.toHaveLength(6));
    await phone.close();
  }
  const phone = device(server, "Phone", { dbName });
  await eventually(async () => expect(await absent(phone)).toEqual([]));
  await eventually(async () => expect(await list(phone)).toEqual(await list(first)));
  for (let n = 0; n < 6; n++) expect(await shown(phone, `t${n}`)).toEqual(await shown(first, `t${n}`));
});

test("the list stays as it is over a restart, offline too", async () => {
  const { server, first } = await filled();
  const dbName = freshDb();
  const before = makeDevice(server, "Phone", { dbName, keep: "opened" });
  await eventually(async () => expect(await absent(before)).toHaveLength(3));
  await before.close();
  const phone = device(server, "Phone", { dbName, keep: "opened" });
  phone.space.connect(false);
  expect(await list(phone)).toEqual(await list(first));
  await expect(phone.runner.getThreadMessages("t2")).rejects.toMatchObject({ code: "offline" });
  phone.space.connect(true);
  await eventually(async () => expect(await shown(phone, "t2")).toEqual(await shown(first, "t2")));
  expect(await absent(phone)).toEqual(["t0", "t1"]);
});

test("a thread whose last entry does not say how it is listed is read at once", async () => {
  const { server, first } = await filled(2);
  const ghost = { id: "ghost", name: "Ghost" };
  const add = async (threadId: string, body: Uint8Array): Promise<void> => {
    const thread = await keyOfThread(threadId);
    const last = server.entries.findLast((entry) => entry.thread === thread)?.seq ?? 0;
    expect(server.add(thread, body, last, `${threadId}-${last}`)).toBeDefined();
  };
  await add("t0", encodeMessage({ type: "claim", threadId: "t0", runId: "never", device: ghost }));
  await add("t1", new TextEncoder().encode("not a message"));
  await add("nothing", new TextEncoder().encode("not a message"));
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await list(phone)).toEqual(await list(first)));
  await same("t1", phone, first);
  // The thread of which nothing can be understood is as good as new.
  await say(phone, "nothing", "n1", agentOf(counter(1)));
  await eventually(async () => expect(await tree(first, "nothing")).toEqual(await tree(phone, "nothing")));
});

test("threads of this device that the space has, too, are not taken for absent ones", async () => {
  const { server, first } = await filled(1);
  const dbName = freshDb();
  const alone = makeRunner({ dbName });
  const input = inputOf("t0", "mine");
  await lastValueFrom(alone.run({ threadId: "t0", agent: agentOf(counter(2)), input }));
  await lastValueFrom(alone.run({ threadId: "own", agent: agentOf(counter(2)), input: inputOf("own", "o1") }));
  await alone.close();
  const phone = device(server, "Phone", { dbName, keep: "opened" });
  await eventually(async () => {
    expect(Object.keys(await tree(first, "t0"))).toEqual(["mine", "t0-r1", "t0-r2"]);
    expect(await tree(phone, "t0")).toEqual(await tree(first, "t0"));
    expect(await tree(first, "own")).toEqual(await tree(phone, "own"));
    expect(await shown(phone, "t0")).toEqual(await shown(first, "t0"));
  });
});

test("a page that was open before the list came shows its thread", async () => {
  const { server, first } = await filled(1);
  const phone = device(server, "Phone", { keep: "opened" });
  phone.space.connect(false);
  expect(await phone.runner.getThreadMessages("t0")).toEqual([]);
  phone.space.connect(true);
  await eventually(async () => expect((await phone.runner.getThread("t0"))?.runCount).toBe(2));
  await same("t0", phone, first);
});

test("a host that does not keep the database in step has its threads read by the one that does", async () => {
  const { server, first } = await filled(1);
  const dbName = freshDb();
  const phone = device(server, "Phone", { dbName, keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toEqual(["t0"]));
  const beside = device(server, "Phone", { dbName, keep: "opened" });
  await same("t0", beside, first);
});

test("a database that was deleted with all that it listed lists it again", async () => {
  const { server, first } = await filled(2);
  const dbName = freshDb();
  const before = makeDevice(server, "Phone", { dbName, keep: "opened" });
  await eventually(async () => expect(await absent(before)).toHaveLength(2));
  await before.close();
  await deleteDB(dbName);
  const phone = device(server, "Phone", { dbName, keep: "opened" });
  await eventually(async () => expect(await list(phone)).toEqual(await list(first)));
  expect(await absent(phone)).toHaveLength(2);
});

test("what servers have lost leaves the list, and comes back with a device that has it", async () => {
  const { server, first } = await filled(2);
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect(await absent(phone)).toHaveLength(2));
  first.space.connect(false);
  server.lose();
  await eventually(async () => expect(await list(phone)).toEqual([]));
  first.space.connect(true);
  await eventually(async () => {
    expect(await list(phone)).toEqual(await list(first));
    expect(await shown(phone, "t1")).toEqual(await shown(first, "t1"));
  });
});

test("with end-to-end encryption, too", async () => {
  const server = new MemoryServer();
  const encryption = () => new Encryption({ key: fastKey });
  const first = device(server, "First", { encryption: encryption() });
  await inStep(first);
  await say(first, "t0", "r1", agentOf(counter(3)));
  await first.runner.updateThread("t0", { title: "A secret title" });
  await eventually(async () => expect((await statusOf(first)).isCurrent).toBe(true));
  await eventually(() => expect(server.entries.length).toBeGreaterThanOrEqual(5));
  const phone = device(server, "Phone", { encryption: encryption(), keep: "opened" });
  await eventually(async () => expect(await list(phone)).toEqual(await list(first)));
  expect(await absent(phone)).toEqual(["t0"]);
  await same("t0", phone, first);
  const wire = server.entries.map(({ body }) => new TextDecoder().decode(body)).join("");
  expect(wire).not.toContain("secret");
});

test("an entry that lies about how its thread is listed changes nothing for long", async () => {
  const { server, first } = await filled(1);
  const ghost = { id: "ghost", name: "Ghost" };
  const thread = await keyOfThread("t0");
  const { seq = 0 } = server.entries.findLast((entry) => entry.thread === thread) ?? {};
  const brief = { title: "A lie", archived: true, pinned: true, createdAt: 1, updatedAt: 2 };
  server.add(thread, encodeMessage({ type: "release", threadId: "t0", runId: "x", device: ghost, brief }), seq, "lie");
  const phone = device(server, "Phone", { keep: "opened" });
  await eventually(async () => expect((await phone.runner.getThread("t0"))?.title).toBe("A lie"));
  await same("t0", phone, first);
  expect(await phone.runner.getThread("t0")).toMatchObject({ title: "Renamed", archived: false, pinned: false });
  await inStep(phone);
  const said = server.entries.flatMap(({ body }) => decodeMessage(body) ?? []);
  expect(said.filter((one) => typeof one === "object" && one.type === "thread" && one.threadId === "t0")).toHaveLength(
    1,
  );
});
