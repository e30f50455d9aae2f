import { EventType } from "@ag-ui/client";
import { openDB } from "idb";
import { describe, expect, test, vi } from "vitest";
import type { Logger } from "../../../src/platform/log.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import { limitsInMemory, type Eviction } from "../../../src/runner/keep/limits.js";
import { RunnerError } from "../../../src/run/errors.js";
import { failing, watchTransactions } from "../storage/idb-spy.js";
import { rawOf } from "../storage/raw.js";
import {
  agentOf,
  collect,
  counter,
  eventsOfFrame,
  framesUntil,
  freshDb,
  gated,
  inputOf,
  makeMemoryRunner,
  makeRunner as makeDurable,
  PRESETS,
  rebuild,
  replay,
  silent,
  user,
} from "./kit.js";

/** Says its run's id, and counts the runs in the state. */
const tally = () =>
  agentOf(async function* ({ runId, state }) {
    const n = ((state as { n?: number } | undefined)?.n ?? 0) + 1;
    yield { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-a`, delta: `${n}` };
    yield { type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-a` };
    yield { type: EventType.STATE_SNAPSHOT, snapshot: { n } };
  });
const nothing = async function* (): AsyncGenerator<never> {};
const run = (runner: LocalAgentRunner, runId: string, threadId = "t", agent = tally()) =>
  collect(runner.run({ threadId, agent, input: inputOf(threadId, runId) }));

function evictionsOf(runner: LocalAgentRunner): Eviction[] {
  const seen: Eviction[] = [];
  runner.evicted$.subscribe((eviction) => seen.push(eviction));
  return seen;
}

/** Waits until the thread has so many runs with events at most. */
const within = (runner: LocalAgentRunner, most: number): Promise<void> =>
  vi.waitFor(async () => {
    const runs = await runner.listRuns("t");
    const events = await Promise.all(runs.map(({ runId }) => runner.getRunEvents(runId)));
    expect(events.filter(({ length }) => length > 0).length).toBeLessThanOrEqual(most);
  });

const ids = (messages: readonly { id: string }[]): string[] => messages.map(({ id }) => id);
const conversation = (runs: number): string[] => Array.from({ length: runs }, (_, n) => [`r${n}-u`, `r${n}-a`]).flat();

describe.each(PRESETS)("%s: limits", (_name, makeRunner) => {
  test("a thread keeps the events of so many runs; of the older ones, messages and state are left", async () => {
    const runner = makeRunner({ limits: { maxRunsPerThread: 4 } });
    const seen = evictionsOf(runner);
    for (let n = 0; n < 12; n++) await run(runner, `r${n}`);
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(0));
    await within(runner, 4);
    const withEvents = await Promise.all(
      (await runner.listRuns("t")).map(async ({ runId }) => (await runner.getRunEvents(runId)).length > 0),
    );
    expect(withEvents.filter(Boolean).length).toBeLessThanOrEqual(4);
    expect(withEvents.filter(Boolean).length).toBeGreaterThanOrEqual(3);
    expect(seen.every((eviction) => eviction.type === "runs" && eviction.threadId === "t")).toBe(true);
    // Told once they are gone.
    await vi.waitFor(() =>
      expect(seen.reduce((sum, eviction) => sum + (eviction.type === "runs" ? eviction.runs : 0), 0)).toBe(
        12 - withEvents.filter(Boolean).length,
      ),
    );

    expect(ids(await runner.getThreadMessages("t"))).toEqual(conversation(12));
    for (const events of [await replay(runner, "t"), await runner.getThreadEvents("t")]) {
      const rebuilt = await rebuild(events);
      expect(ids(rebuilt.messages)).toEqual(conversation(12));
      expect(rebuilt.state).toEqual({ n: 12 });
    }
    const fresh = makeRunner({ dbName: runner.dbName });
    await run(fresh, "r12");
    expect(ids((await rebuild(await replay(fresh, "t"))).messages)).toEqual(conversation(13));
    expect(await fresh.getThreadState("t")).toEqual({ n: 13 });
  });

  test("a reader whose place was cut off gets the snapshot", async () => {
    const runner = makeRunner({ limits: { maxRunsPerThread: 1 } });
    await run(runner, "r0");
    const [prelude] = await framesUntil(runner, { threadId: "t" });
    const { cursor } = prelude as { cursor: { runIndex: number; seq: number; epoch: number } };
    for (let n = 1; n < 4; n++) await run(runner, `r${n}`);
    await within(runner, 1);
    for (const after of [cursor, { ...cursor, seq: 1 }, { ...cursor, runIndex: 2, seq: -1 }]) {
      const frames = await framesUntil(runner, { threadId: "t", after });
      // Nobody is told of a run of which nothing is left to be told.
      expect(frames[0]?.type).toBe("prelude");
      const events = frames.flatMap(eventsOfFrame);
      expect(ids((await rebuild(events)).messages)).toEqual(conversation(4));
    }
  });

  test("the cut keeps the branch that is shown, and later edits still work", async () => {
    const runner = makeRunner({ limits: { maxRunsPerThread: 2 } });
    for (let n = 0; n < 2; n++) await run(runner, `r${n}`);
    const kept = (await runner.getThreadMessages("t")).slice(0, 2);
    const edited = inputOf("t", "r2", [...kept, user("r1-u", "edited")]);
    await collect(runner.run({ threadId: "t", agent: tally(), input: edited }));
    for (let n = 3; n < 6; n++) await run(runner, `r${n}`);
    await within(runner, 2);
    const shown = ["r0-u", "r0-a", "r1-u", "r2-a", "r3-u", "r3-a", "r4-u", "r4-a", "r5-u", "r5-a"];
    expect(ids((await rebuild(await replay(runner, "t"))).messages)).toEqual(shown);

    const whole = await runner.getThreadMessages("t");
    const again = inputOf("t", "r6", [...whole.slice(0, 8), user("r5-u", "another question")]);
    await collect(runner.run({ threadId: "t", agent: tally(), input: again }));
    await within(runner, 2);
    const { messages } = await rebuild(await replay(runner, "t"));
    expect(ids(messages)).toEqual([...shown.slice(0, 9), "r6-a"]);
    expect(messages[8]?.content).toBe("another question");
  });

  test("the threads least recently used go; a live one never does", async () => {
    const runner = makeRunner({ limits: { maxThreads: 3 } });
    const seen = evictionsOf(runner);
    const live = run(runner, "r", "live", agentOf(silent));
    await vi.waitFor(async () => expect(await runner.getRunEvents("r")).toHaveLength(2));
    for (let n = 0; n < 4; n++) {
      // Threads are ordered by the millisecond of their last change.
      const { updatedAt = 0 } = (await runner.listThreads())[0] ?? {};
      await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(updatedAt));
      await run(runner, "r", `t${n}`);
      await vi.waitFor(async () => expect((await runner.listThreads()).length).toBeLessThanOrEqual(3));
    }
    expect(ids((await runner.listThreads()).map(({ threadId }) => ({ id: threadId }))).sort()).toEqual([
      "live",
      "t2",
      "t3",
    ]);
    // Told once the thread is gone.
    const gone = ["t0", "t1"].map((threadId) => ({ type: "thread", threadId }));
    await vi.waitFor(() => expect(seen).toEqual(gone));
    expect(await replay(runner, "t0")).toEqual([]);
    expect(await runner.getThreadMessages("t0")).toEqual([]);
    await runner.stop({ threadId: "live" });
    await live;
  });
});

test.each([
  ["thread", new RunnerError("corrupt-record", { threadId: "t1" }), 1],
  ["disk", new DOMException("It is full", "QuotaExceededError"), 3],
])("clearThreads deletes all other threads if a %s fails, and says so (L10)", async (_what, error, left) => {
  const runner = makeDurable();
  for (const threadId of ["t0", "t1", "t2"]) await run(runner, "r", threadId);
  watchTransactions(failing(({ stores }) => stores.join() === "heads,meta,threads,waiting", 1, error));
  await expect(runner.clearThreads()).rejects.toMatchObject({ name: "RunnerError" });
  expect(await runner.listThreads()).toHaveLength(left);
  expect(await runner.clearThreads()).toBe(left);
});

describe.each(PRESETS)("%s: clearing", (_name, makeRunner) => {
  test("clearThreads stops what is live, here and in other runners, and deletes everything", async () => {
    const one = makeRunner();
    const other = makeRunner({ dbName: one.dbName });
    const changes: string[] = [];
    other.watchThreads().subscribe((change) => changes.push(change.type));
    await run(one, "r", "idle");
    const lives = [run(one, "r", "here", agentOf(silent)), run(other, "r", "there", agentOf(silent))];
    await vi.waitFor(async () => expect((await one.listThreads()).filter(({ live }) => live)).toHaveLength(2));
    expect(await one.clearThreads()).toBe(3);
    for (const events of await Promise.all(lives)) {
      expect(events.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, outcome: { type: "cancelled" } });
    }
    for (const runner of [one, other]) {
      expect(await runner.listThreads()).toEqual([]);
      for (const threadId of ["idle", "here", "there"]) expect(await replay(runner, threadId)).toEqual([]);
    }
    await vi.waitFor(() => expect(changes.filter((type) => type === "deleted").length).toBeGreaterThanOrEqual(3));
    expect(await one.clearThreads()).toBe(0);
  });

  test("a deleted thread begins anew: nothing of the old one comes back, its run ids are free again", async () => {
    const runner = makeRunner();
    for (let n = 0; n < 3; n++) await run(runner, `r${n}`);
    const [prelude] = await framesUntil(runner, { threadId: "t" });
    const { cursor: after } = prelude as { cursor: { runIndex: number; seq: number; epoch: number } };
    await runner.clearThreads();
    await run(runner, "r0", "t", agentOf(counter(1)));
    expect(ids(await runner.getThreadMessages("t"))).toEqual(["r0-u", "r0-a"]);
    expect((await runner.listRuns("t")).map(({ runId }) => runId)).toEqual(["r0"]);
    // Who comes back with a cursor of the old thread is given the new one.
    const events = (await framesUntil(runner, { threadId: "t", after })).flatMap(eventsOfFrame);
    expect(ids((await rebuild(events)).messages)).toEqual(["r0-u", "r0-a"]);
  });

  test("a deletion that was asked for twice leaves the thread that begins after the first alone", async () => {
    let asked = false;
    const runner: LocalAgentRunner = makeRunner({
      onConcurrentRun: "queue",
      atFailurePoint: async (point) => {
        if (point !== "claiming.locked" || !asked) return;
        await vi.waitFor(async () => expect(await runner.getThread("t")).toBeUndefined(), { interval: 1 });
      },
    });
    const live = collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "old") }));
    await vi.waitFor(async () => expect((await runner.getThread("t"))?.live?.runId).toBe("old"));
    asked = true;
    const deleted = [1, 2, 3].map(() => runner.deleteThread("t"));
    const { gate, letOn } = gated();
    const anew = collect(
      runner.run({ threadId: "t", agent: agentOf(counter(1, () => gate)), input: inputOf("t", "new") }),
    );
    expect((await Promise.all(deleted)).filter((is) => is)).toHaveLength(1);
    letOn();
    await live;
    expect((await anew).at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, runId: "new" });
    expect((await runner.getThreadMessages("t")).map(({ id }) => id)).toEqual(["new-u", "new-a"]);
  });

  test("destroy closes the runner and deletes everything", async () => {
    const runner = makeRunner();
    await run(runner, "r");
    const { dbName } = runner;
    await runner.destroy();
    const again = (): unknown => runner.run({ threadId: "t", agent: tally(), input: inputOf("t", "r2") });
    expect(again).toThrow(expect.objectContaining({ code: "closed" }));
    expect(await makeRunner({ dbName }).listThreads()).toEqual([]);
  });
});

test("a database that somebody else holds on to is told of in time (L13)", async () => {
  const runner = makeDurable({ openTimeoutMs: 2_000 });
  await run(runner, "r");
  const foreign = await openDB(runner.dbName);
  await expect(runner.destroy()).rejects.toMatchObject({ code: "storage-blocked", details: { dbName: runner.dbName } });
  foreign.close();
});

describe("limits in memory", () => {
  const large = () =>
    agentOf(async function* ({ runId }) {
      yield { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" };
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-a`, delta: "x".repeat(10_000) };
      yield { type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-a` };
    });
  const threadIds = async (runner: LocalAgentRunner) => (await runner.listThreads()).map(({ threadId }) => threadId);

  test("so many bytes are kept: threads go whole, the oldest first, never one that is pinned or the last", async () => {
    const runner = makeMemoryRunner({ dbName: freshDb(), limits: { maxBytes: 100_000 } });
    const seen = evictionsOf(runner);
    await run(runner, "r", "pinned", large());
    await runner.updateThread("pinned", { pinned: true });
    for (let n = 0; n < 12; n++) await run(runner, "r", `t${n}`, large());
    await vi.waitFor(() => expect(seen.length).toBeGreaterThanOrEqual(9));
    const left = await threadIds(runner);
    expect(left).toContain("pinned");
    expect(left).toContain("t11");
    expect(left).not.toContain("t0");
    expect(left.length).toBeLessThanOrEqual(5);
    expect(seen).toEqual(seen.map((_, n) => ({ type: "thread", threadId: `t${n}` })));

    const small = makeMemoryRunner({ dbName: freshDb(), limits: { maxBytes: 10 } });
    await run(small, "r0", "only", large());
    await run(small, "r1", "only", large());
    expect(ids(await small.getThreadMessages("only"))).toEqual(["r0-u", "r0-a", "r1-u", "r1-a"]);
    await run(small, "r", "other", large());
    await vi.waitFor(async () => expect(await threadIds(small)).toEqual(["other"]));
  });

  test("deleting and cutting give back what was counted", async () => {
    const runner = makeMemoryRunner({ dbName: freshDb(), limits: { maxBytes: 400_000, maxRunsPerThread: 2 } });
    const seen = evictionsOf(runner);
    await run(runner, "r", "kept", large());
    for (let n = 0; n < 30; n++) {
      await run(runner, "r", "deleted", large());
      await runner.deleteThread("deleted");
    }
    const state = agentOf(async function* () {
      yield { type: EventType.STATE_SNAPSHOT, snapshot: { large: "x".repeat(20_000) } };
    });
    for (let n = 0; n < 30; n++) await run(runner, `r${n}`, "cut", state);
    await vi.waitFor(() => expect(seen.filter(({ type }) => type === "runs").length).toBeGreaterThan(5));
    expect(await threadIds(runner)).toEqual(["cut", "kept"]);
  });

  test("where nothing is said 1,000 threads and 100 runs of each are kept", async () => {
    const runner = makeMemoryRunner({ dbName: freshDb() });
    const seen = evictionsOf(runner);
    for (let n = 0; n < 102; n++) await run(runner, `r${n}`);
    await vi.waitFor(() => expect(seen).toMatchObject([{ type: "runs", threadId: "t" }]));
    expect(limitsInMemory({})).toEqual({ maxThreads: 1_000, maxRunsPerThread: 100, maxBytes: 512 * 1024 * 1024 });

    const endless = makeMemoryRunner({ dbName: freshDb(), limits: { maxRunsPerThread: Infinity } });
    const kept = evictionsOf(endless);
    for (let n = 0; n < 102; n++) await run(endless, `r${n}`, "t", agentOf(nothing));
    await endless.close();
    expect(kept).toEqual([]);
  });
});

describe("limits, where a record of a run cannot be read (L19)", () => {
  /** Runs r0 to r4 in "t", of which the records at `unreadable` are broken, and a runner with limits. */
  async function broken(unreadable: readonly number[], branched: boolean) {
    const dbName = freshDb();
    const before = makeDurable({ dbName });
    for (let n = 0; n < 5; n++) {
      const kept = branched && n === 3 ? (await before.getThreadMessages("t")).slice(0, 2) : undefined;
      const input = inputOf("t", `r${n}`, kept && [...kept, user("r1-u", "edited")]);
      await collect(before.run({ threadId: "t", agent: tally(), input }));
    }
    const warn = vi.fn<Logger["warn"]>();
    const runner = makeDurable({ dbName, limits: { maxRunsPerThread: 4 }, logger: { error: () => undefined, warn } });
    const shown = ids(await runner.getThreadMessages("t"));
    const raw = await rawOf(dbName);
    for (const runIndex of unreadable) {
      const record = (await raw.get("runs", ["t", runIndex]))!;
      await raw.put("runs", { ...record, status: 7 as never });
    }
    return { runner, warn, seen: evictionsOf(runner), shown };
  }

  test.each([[[1]], [[0, 2]], [[3]], [[2, 3, 4]]])(
    "%j: older runs are cut off, nothing that is shown goes",
    async (unreadable) => {
      const { runner, warn, seen, shown } = await broken(unreadable, false);
      for (const runId of ["r5", "r6", "r7"]) await run(runner, runId);
      await vi.waitFor(() => expect(seen).toContainEqual(expect.objectContaining({ type: "runs", threadId: "t" })));
      const { messages, state } = await rebuild(await replay(runner, "t"));
      expect(ids(messages)).toEqual([...shown, ...["r5", "r6", "r7"].flatMap((id) => [`${id}-u`, `${id}-a`])]);
      expect(state).toEqual({ n: 8 });
      expect(warn).not.toHaveBeenCalled();
    },
  );

  test("where nothing can be cut that is told once, and the other threads are kept within theirs", async () => {
    const { runner, warn, seen } = await broken([2, 4], true);
    for (const runId of ["r5", "r6"]) await run(runner, runId);
    for (let n = 0; n < 5; n++) await run(runner, `o${n}`, "other");
    await vi.waitFor(() => expect(seen).toContainEqual(expect.objectContaining({ type: "runs", threadId: "other" })));
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/"t" is not kept within its limits: corrupt-record/), expect.any(Error)],
    ]);
    expect(ids(await runner.getThreadMessages("t"))).toContain("r6-a");
  });
});
