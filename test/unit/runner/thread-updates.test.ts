import { EventType } from "@ag-ui/client";
import { filter, firstValueFrom } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { openBroadcastChannel } from "../../../src/platform/channel.js";
import { systemClock } from "../../../src/platform/clock.js";
import { hostChannelName } from "../../../src/platform/names.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { ThreadUpdate } from "../../../src/run/types.js";
import type { ThreadChange } from "../../../src/wire/shapes.js";
import { rawOf } from "../storage/raw.js";
import {
  agentOf,
  collect,
  counter,
  fastClock,
  freshDb,
  inputOf,
  makeRunner as makeDurable,
  PRESETS,
  replay,
  silent,
  stubborn,
} from "./kit.js";

const run = (runner: LocalAgentRunner, runId: string, threadId = "t", agent = agentOf(counter(1))) =>
  collect(runner.run({ threadId, agent, input: inputOf(threadId, runId) }));

/** A run that goes on until it is stopped, in the log. */
async function live(runner: LocalAgentRunner, threadId = "t", agent = agentOf(silent)): Promise<Promise<unknown[]>[]> {
  const events = run(runner, "live", threadId, agent);
  await vi.waitFor(async () => expect(await runner.getRunEvents("live", { threadId })).toHaveLength(2));
  // In a list: a promise by itself would be waited for.
  return [events];
}

function changesOf(runner: LocalAgentRunner): ThreadChange[] {
  const changes: ThreadChange[] = [];
  runner.watchThreads().subscribe((change) => changes.push(change));
  return changes;
}

const ids = async (runner: LocalAgentRunner, query: { archived?: boolean } = {}): Promise<string[]> =>
  (await runner.listThreads(query)).map(({ threadId }) => threadId);

describe.each(PRESETS)("%s: updates of threads", (_name, makeRunner) => {
  test("what is given is written and the rest stays; the answer is the thread as the list shows it", async () => {
    const runner = makeRunner();
    await run(runner, "r");
    const [before] = await runner.listThreads();
    const wanted = { ...before, title: "New name", pinned: true };
    expect(await runner.updateThread("t", { title: "  New name\n", pinned: true })).toEqual(wanted);
    expect(await runner.updateThread("t", {})).toEqual(wanted);
    expect(await runner.getThread("t")).toEqual(wanted);
    expect(await runner.listThreads()).toEqual([wanted]);
    expect(await runner.updateThread("t", { pinned: false })).toEqual({ ...wanted, pinned: false });
  });

  test("a thread is renamed while its run is live, and keeps the name when that ends and the next begins", async () => {
    const runner = makeRunner();
    const [events] = await live(runner);
    expect(await runner.updateThread("t", { title: "named" })).toMatchObject({ live: { runId: "live", runIndex: 0 } });
    await runner.stop({ threadId: "t" });
    await events;
    expect(await runner.getThread("t")).toMatchObject({ title: "named", lastStatus: "stopped" });
    await run(runner, "next");
    expect(await runner.getThread("t")).toMatchObject({ title: "named", runCount: 2, lastStatus: "finished" });
  });

  test("two runners that change different fields at once both have their way, also in a run of one of them", async () => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName });
    const [events] = await live(one);
    await Promise.all([
      one.updateThread("t", { title: "named" }),
      other.updateThread("t", { pinned: true }),
      one.stop({ threadId: "t" }),
      other.updateThread("t", { archived: true }),
    ]);
    await events;
    for (const runner of [one, other]) {
      expect(await runner.getThread("t")).toMatchObject({
        title: "named",
        pinned: true,
        archived: true,
        lastStatus: "stopped",
      });
    }
  });

  test("an archived thread is in the list of archived ones only, until it is taken back; a thread keeps its place", async () => {
    const runner = makeRunner();
    for (const threadId of ["a", "b", "c"]) {
      const { updatedAt = 0 } = (await runner.listThreads())[0] ?? {};
      // Threads are ordered by the millisecond of their last change.
      await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(updatedAt));
      await run(runner, "r", threadId);
    }
    await runner.updateThread("a", { title: "named" });
    await runner.updateThread("b", { archived: true });
    expect([await ids(runner), await ids(runner, { archived: true })]).toEqual([["c", "a"], ["b"]]);
    // A further run leaves it where it is.
    await run(runner, "r2", "b");
    expect([await ids(runner), await ids(runner, { archived: true })]).toEqual([["c", "a"], ["b"]]);
    await runner.updateThread("b", { archived: false });
    expect(await ids(runner)).toEqual(["b", "c", "a"]);
  });

  test("no limit deletes or cuts a pinned thread", async () => {
    const runner = makeRunner({ limits: { maxThreads: 1, maxRunsPerThread: 1 } });
    await run(runner, "r0", "pinned");
    await runner.updateThread("pinned", { pinned: true });
    for (let n = 1; n < 3; n++) await run(runner, `r${n}`, "pinned");
    for (const threadId of ["t0", "t1"]) await run(runner, "r", threadId);
    await vi.waitFor(async () => expect(await ids(runner)).toEqual(["pinned"]));
    for (let n = 0; n < 3; n++) expect(await runner.getRunEvents(`r${n}`)).not.toEqual([]);
  });

  test("every runner is told of an update", async () => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName });
    await run(one, "r");
    const changes = [changesOf(one), changesOf(other)];
    const thread = await one.updateThread("t", { title: "named" });
    for (const seen of changes) await vi.waitFor(() => expect(seen).toContainEqual({ type: "changed", thread }));
  });

  test("an unknown thread, and a deleted one, cannot be updated", async () => {
    const runner = makeRunner();
    const unknown = { code: "unknown-thread", details: { threadId: "t" } };
    for (const update of [{ title: "named" }, {}])
      await expect(runner.updateThread("t", update)).rejects.toMatchObject(unknown);
    expect(await runner.getThread("t")).toBeUndefined();
    await run(runner, "r");
    await runner.deleteThread("t");
    for (const update of [{ title: "named" }, {}])
      await expect(runner.updateThread("t", update)).rejects.toMatchObject(unknown);
    expect(await runner.getThread("t")).toBeUndefined();
    expect([await ids(runner), await ids(runner, { archived: true })]).toEqual([[], []]);
  });

  test.each<[string, unknown, string]>([
    ["nothing", undefined, "update"],
    ["null", null, "update"],
    ["a list", [], "update"],
    ["a word", "named", "update"],
    ["a title that is blank", { title: " \n\t" }, "title"],
    ["a title that is no string", { title: { length: 3 } }, "title"],
    ["null for a title", { title: null }, "title"],
    ["a title that is too long", { title: "x".repeat(201) }, "title"],
    ["a number for archived", { archived: 1 }, "archived"],
    ["a word for pinned", { pinned: "true" }, "pinned"],
    ["a field that is not for people to change", { title: "named", updatedAt: 1 }, "update"],
    ["a prototype", JSON.parse('{ "title": "named", "__proto__": { "pinned": true } }'), "update"],
    ["a constructor", { constructor: { prototype: { pinned: true } } }, "update"],
  ])("an update with %s is refused and nothing of it written", async (_what, update, field) => {
    const runner = makeRunner();
    await run(runner, "r");
    const before = await runner.getThread("t");
    // What a person who writes JavaScript, or another context, can give.
    const refused = runner.updateThread("t", update as ThreadUpdate);
    await expect(refused).rejects.toMatchObject({ code: "invalid-input", details: { field } });
    expect(await runner.getThread("t")).toEqual(before);
  });

  test("a title may have 200 characters besides the blanks around it", async () => {
    const runner = makeRunner();
    await run(runner, "r");
    expect((await runner.updateThread("t", { title: ` ${"x".repeat(200)} ` })).title).toHaveLength(200);
  });

  test("what an update inherits counts for nothing, and undefined is as good as not given", async () => {
    const runner = makeRunner();
    await run(runner, "r");
    const before = await runner.getThread("t");
    // `undefined` is what an optional argument of the caller's own comes to.
    const update = Object.assign(Object.create({ pinned: true }), { title: undefined }) as ThreadUpdate;
    expect(await runner.updateThread("t", update)).toEqual(before);
  });

  test("a thread without a proper id is refused", async () => {
    const runner = makeRunner();
    const refused = { code: "invalid-input", details: { field: "threadId" } };
    await expect(runner.updateThread("", { title: "named" })).rejects.toMatchObject(refused);
    await expect(runner.deleteThread("")).rejects.toMatchObject(refused);
    await expect(runner.getThread("")).rejects.toMatchObject(refused);
  });
});

describe.each(PRESETS)("%s: deleting a thread", (_name, makeRunner) => {
  test("an idle thread goes and no other, pinned or archived as it may be; every runner is told", async () => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName });
    for (const threadId of ["t", "kept"]) await run(one, "r", threadId);
    await one.updateThread("t", { pinned: true, archived: true });
    const changes = [changesOf(one), changesOf(other)];
    expect(await one.deleteThread("t")).toBe(true);
    for (const seen of changes) await vi.waitFor(() => expect(seen).toContainEqual({ type: "deleted", threadId: "t" }));
    for (const runner of [one, other]) {
      expect([await ids(runner), await ids(runner, { archived: true })]).toEqual([["kept"], []]);
      expect(await replay(runner, "t")).toEqual([]);
    }
    expect(await one.deleteThread("t")).toBe(false);
  });

  test("a thread that begins anew at once is told as deleted before it is told as changed (L2)", async () => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName });
    await run(one, "r");
    const changes = [changesOf(one), changesOf(other)];
    await one.deleteThread("t");
    await run(one, "again");
    for (const seen of changes) {
      const later = () => seen.slice(seen.findIndex(({ type }) => type === "deleted") + 1);
      await vi.waitFor(() => expect(seen).toContainEqual({ type: "deleted", threadId: "t" }));
      await vi.waitFor(() => expect(later().at(-1)).toMatchObject({ type: "changed", thread: { threadId: "t" } }));
    }
  });

  test.each(["here", "in another runner"])("a run that is live %s is stopped first (L7)", async (where) => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName });
    const [events] = await live(where === "here" ? one : other);
    expect(await one.deleteThread("t")).toBe(true);
    expect((await events)?.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, outcome: { type: "cancelled" } });
    for (const runner of [one, other]) {
      expect(await runner.isRunning({ threadId: "t" })).toBe(false);
      expect(await runner.getThread("t")).toBeUndefined();
    }
  });

  test("a run that has only been asked for does not bring the thread back", async () => {
    const runner = makeRunner();
    const events = run(runner, "r", "t", agentOf(silent));
    await runner.deleteThread("t");
    expect((await events).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
    expect(await runner.getThread("t")).toBeUndefined();
  });

  test("runs that wait for their turn do not bring the thread back", async () => {
    const runner = makeRunner({ onConcurrentRun: "queue" });
    const [events] = await live(runner);
    const waiting = expect(run(runner, "waiting")).rejects.toMatchObject({ code: "cancelled" });
    expect(await runner.deleteThread("t")).toBe(true);
    await Promise.all([events, waiting]);
    expect(await runner.getThread("t")).toBeUndefined();
  });

  test("an agent that does not heed its stop holds a deletion up for no longer than its grace (L7)", async () => {
    const runner = makeRunner();
    const [events] = await live(runner, "t", stubborn());
    expect(await runner.deleteThread("t")).toBe(true);
    expect((await events)?.at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  });
});

test("a deletion goes on once another runner's run has ended, also where that is heard before the stop is through", async () => {
  const dbName = freshDb();
  const holder = makeDurable({ dbName });
  const [events] = await live(holder);
  let heard: Promise<unknown> | undefined;
  const runner = makeDurable({
    dbName,
    // No silence makes it look again.
    clock: { ...systemClock, after: () => new Promise(() => undefined) },
    atFailurePoint: async (point) => {
      if (point === "stopping.requested") await heard;
    },
  });
  // It hears after the runner, whose channel is older.
  const channel = openBroadcastChannel(hostChannelName(dbName));
  onTestFinished(() => channel.close());
  const isEnd = (message: unknown): boolean => (message as { type: string }).type === "ended";
  heard = firstValueFrom(channel.messages$.pipe(filter(isEnd)));
  expect(await runner.deleteThread("t")).toBe(true);
  await events;
});

test("nobody is told where nothing changes", async () => {
  const runner = makeDurable();
  for (const threadId of ["t", "quiet"]) await run(runner, "r", threadId);
  const changed: unknown[] = [];
  const channel = openBroadcastChannel(hostChannelName(runner.dbName));
  onTestFinished(() => channel.close());
  channel.messages$.subscribe((message) => {
    // What hosts say to one another is data of their own.
    const { type, threadId } = message as { type: string; threadId: string };
    if (type === "changed") changed.push(threadId);
  });
  await runner.updateThread("quiet", {});
  await expect(runner.updateThread("unknown", { title: "named" })).rejects.toThrow();
  expect(await runner.deleteThread("unknown")).toBe(false);
  await runner.updateThread("t", { title: "named" });
  // Messages of one sender keep their order.
  await vi.waitFor(() => expect(changed).not.toEqual([]));
  expect(changed).toEqual(["t"]);
});

test("a run that cannot be stopped in time keeps its thread, and is named (L5)", async () => {
  const dbName = freshDb();
  const holder = makeDurable({ dbName, stopGraceMs: 600_000 });
  // Its time is short, and what it waits for a stop to be heeded is long.
  const hurried = makeDurable({ dbName, stopGraceMs: 600_000, clock: fastClock(50) });
  const [events] = await live(holder, "t", stubborn());
  const busy = { code: "thread-busy", message: "Thread already running" };
  await expect(hurried.deleteThread("t")).rejects.toMatchObject({
    ...busy,
    details: { threadId: "t", runId: "live", runIndex: 0 },
  });
  expect(await hurried.getThread("t")).toMatchObject({ live: { runId: "live" } });
  // Nobody waits for it any more.
  holder.letGo();
  await expect(events).rejects.toMatchObject({ code: "closed" });
});

test("a thread whose row is not valid is told as corrupt and left as it is; it can be deleted, also while it is live (L10)", async () => {
  const runner = makeDurable();
  const holder = makeDurable({ dbName: runner.dbName });
  const [events] = await live(holder);
  const raw = await rawOf(runner.dbName);
  const record = { ...(await raw.get("threads", "t"))!, runCount: -1 };
  await raw.put("threads", record);
  const corrupt = { code: "corrupt-record", details: { store: "threads", threadId: "t" } };
  await expect(runner.updateThread("t", { title: "named" })).rejects.toMatchObject(corrupt);
  await expect(runner.getThread("t")).rejects.toMatchObject(corrupt);
  expect(await raw.get("threads", "t")).toEqual(record);
  expect(await runner.deleteThread("t")).toBe(true);
  await events;
  expect(await runner.getThread("t")).toBeUndefined();
});
