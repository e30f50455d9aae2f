import { EventType, verifyEvents, type BaseEvent, type Message } from "@ag-ui/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { weigh } from "../../../src/run/size.js";
import { sharedMemoryHome } from "../../../src/runner/memory-home.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { memoryRunStore } from "../../../src/storage/memory/memory-run-store.js";
import { InMemoryAgentRunner } from "../../../src/runner/in-memory-agent-runner.js";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import { chunkOf, claimed, foreignEnd, settlement } from "../storage/kit.js";
import { rawOf } from "../storage/raw.js";
import type { Frame } from "../../../src/wire/shapes.js";
import {
  agentOf,
  collect,
  counter,
  fastClock,
  framesUntil,
  freshDb,
  inputOf,
  makeRunner,
  quiet,
  rebuild,
  replay,
  user,
} from "./kit.js";
import { nested, poisonedSuite, said, started } from "./poisoned.suite.js";

describe("IndexedDBAgentRunner", () => {
  poisonedSuite((finished) => {
    const dbName = freshDb();
    const store = indexedDBRunStore({ dbName });
    finished(() => store.close());
    const open = () => {
      const runner = new IndexedDBAgentRunner({ dbName, stopGraceMs: 50, logger: quiet });
      finished(() => runner.close());
      return runner;
    };
    return { store, open };
  }, 1_000);
});

describe("InMemoryAgentRunner", () => {
  poisonedSuite((finished) => {
    const dbName = freshDb();
    const open = () => {
      // Whoever may execute what was left running is waited for some seconds.
      const runner = new InMemoryAgentRunner({ dbName, stopGraceMs: 50, clock: fastClock(20) });
      finished(() => runner.destroy());
      return runner;
    };
    return { store: memoryRunStore(sharedMemoryHome(dbName).data), open };
  }, 1_500);
});

/** Reads records as Chromium does in a context whose stack is too small for them: as null. */
function smallStack(): void {
  const shown = (value: unknown): unknown => (weigh(value, {}).depth > 500 ? null : value);
  const result = Object.getOwnPropertyDescriptor(IDBRequest.prototype, "result")!;
  Object.defineProperty(IDBRequest.prototype, "result", {
    ...result,
    get(this: IDBRequest) {
      const read: unknown = result.get!.call(this);
      if (read instanceof IDBCursorWithValue) Object.assign(read, { value: shown(read.value) });
      if (Array.isArray(read)) return read.map(shown);
      return Object.getPrototypeOf(read ?? []) === Object.prototype ? shown(read) : read;
    },
  });
  onTestFinished(() => void Object.defineProperty(IDBRequest.prototype, "result", result));
}

test.each([
  ["in the middle of a run", false],
  ["at the end of a run that was left running", true],
])("a chunk that reads as null %s hides what comes after it, and nothing else (L7, L10)", async (_where, isLast) => {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName });
  const claim = await claimed(store, "t", "r1", { holder: "old" });
  const before = [started("r1"), ...said("before")];
  await store.append(claim, chunkOf(claim, 0, before));
  await store.append(claim, chunkOf(claim, 4, [{ type: EventType.CUSTOM, name: "deep", value: nested(600) }]));
  if (!isLast) {
    await store.append(claim, chunkOf(claim, 5, said("after")));
    await store.settleForeign("t", "r1", "broken", 4_000, foreignEnd);
  }
  await store.close();
  smallStack();

  const runner = makeRunner({ dbName });
  await runner.opened;
  await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(false));
  expect((await runner.getThreadMessages("t")).map(({ id }) => id)).toEqual(["u", "before"]);
  await expect(runner.getRunEvents("r1")).rejects.toMatchObject({ code: "corrupt-record" });
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "next") }));
  expect((await runner.getThreadMessages("t")).map(({ id }) => id)).toEqual(["u", "before", "next-u", "next-a"]);
});

test("a state that reads as null is read from the log (L1, L10)", async () => {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName });
  const claim = await claimed(store, "t", "r1", { holder: "old" });
  await store.append(claim, chunkOf(claim, 0, [started("r1"), { type: EventType.STATE_SNAPSHOT, snapshot: { n: 1 } }]));
  const message = (await store.input("t", 0))!.messages[0]!;
  const derived = { messages: [{ message }], rewritten: false, state: { deep: nested(600) }, interrupts: [] };
  await store.settle(claim, settlement(claim, 2, { derived }));
  await store.close();
  smallStack();

  const runner = makeRunner({ dbName });
  expect(await runner.getThreadState("t")).toEqual({ n: 1 });
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "next") }));
  expect(await runner.getThreadState("t")).toEqual({ n: 1 });
  expect(await runner.getRun("next")).toMatchObject({ status: "finished" });
});

const deep = { deep: nested(600) };

/** Three runs with text, an activity and a state; of the second something is too deep. @param store whose record it is */
async function spoiled(store: "messages" | "runs" | "states", run: 0 | 1 | 2): Promise<string> {
  const dbName = freshDb();
  const runs = indexedDBRunStore({ dbName });
  const plan = (n: number): BaseEvent => ({
    type: EventType.ACTIVITY_SNAPSHOT,
    messageId: "plan",
    activityType: "plan",
    content: { n },
  });
  for (const n of [0, 1, 2]) {
    const head = await runs.head("t");
    const base = head && { activeRunIndex: head.activeRunIndex, epoch: head.epoch };
    const asked = user(`u${n}`);
    const isSpoiled = n === run;
    const claim = await claimed(runs, "t", `r${n}`, {
      base,
      prevRunIndex: n === 0 ? null : n - 1,
      input: { messages: [asked] },
    });
    const events = [started(`r${n}`), plan(n), ...said(`a${n}`), { type: EventType.STATE_SNAPSHOT, snapshot: { n } }];
    await runs.append(claim, chunkOf(claim, 0, events));
    const end = { type: EventType.RUN_FINISHED, threadId: "t", runId: `r${n}` };
    const activity = { id: "plan", role: "activity", activityType: "plan", content: { n } } as Message;
    const added = [asked, activity, { id: `a${n}`, role: "assistant", content: `a${n}` } as Message];
    await runs.settle(
      claim,
      settlement(claim, events.length, {
        chunk: chunkOf(claim, events.length, [end]),
        closing: {
          runStarted: started(`r${n}`),
          customs: isSpoiled && store === "runs" ? [{ type: EventType.CUSTOM, name: "c", value: deep }] : [],
          terminal: end,
        },
        derived: {
          messages: added.map((message) => ({
            message: isSpoiled && store === "messages" ? ({ ...message, metadata: deep } as Message) : message,
          })),
          rewritten: false,
          state: isSpoiled && store === "states" ? { n, deep } : { n },
          interrupts: [],
        },
      }),
    );
  }
  await runs.close();
  return dbName;
}

/** All that reads the thread says the same, and goes on. */
async function expectWhole(dbName: string): Promise<void> {
  const runner = makeRunner({ dbName });
  await runner.opened;
  const ids = ["u0", "plan", "a0", "u1", "a1", "u2", "a2"];
  const messages = await runner.getThreadMessages("t");
  expect(messages.map(({ id }) => id)).toEqual(ids);
  expect(await runner.getThreadState("t")).toEqual({ n: 2 });
  for (const limit of [1, 2, 3, 50]) {
    const page = await runner.getMessagePage("t", { limit });
    expect(page.messages).toEqual(messages.slice(-limit));
  }
  const before = await runner.getMessagePage("t", { limit: 2, before: "u2" });
  expect(before.messages.map(({ id }) => id)).toEqual(["u1", "a1"]);
  for (const kind of ["snapshot", "events"] as const) {
    const told = await collect(runner.connect({ threadId: "t", replay: kind }).pipe(verifyEvents()));
    expect(await rebuild(told)).toEqual({ messages, state: { n: 2 } });
  }
  await collect(runner.connect({ threadId: "t", replay: "last-run" }));
  expect((await rebuild(await runner.getThreadEvents("t"))).messages).toEqual(messages);
  const listed = (await runner.listRuns("t", {})).map(({ runId }) => runId);
  expect(listed.length).toBeGreaterThan(1);
  await runner.agentIds("t");
  // A reader that comes back, from each place.
  for (const runIndex of [0, 1, 2]) {
    const epoch = 1 + runIndex;
    const frames = await framesUntil(runner, { threadId: "t", after: { runIndex, seq: 2, epoch } });
    expect(frames.at(-1)).toEqual({ type: "end" });
  }
  const follower = new AbortController();
  const followed: Frame[] = [];
  const following = (async () => {
    for await (const frame of runner.attach({ threadId: "t", follow: true }, follower.signal)) followed.push(frame);
  })();
  await vi.waitFor(() => expect(followed.at(-1)).toEqual({ type: "idle" }));

  await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "next") }));
  expect(await runner.getRun("next")).toMatchObject({ status: "finished" });
  await vi.waitFor(() => expect(followed.at(-1)).toMatchObject({ type: "settled", status: "finished" }));
  follower.abort();
  await following;
  const after = await runner.getThreadMessages("t");
  expect(after.map(({ id }) => id)).toEqual([...ids, "next-u", "next-a"]);
  // Another host, which has nothing in memory.
  const other = makeRunner({ dbName });
  expect(await other.getThreadMessages("t")).toEqual(after);
  expect((await other.getMessagePage("t", { limit: 3 })).messages).toEqual(after.slice(-3));
  await collect(other.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "again") }));
  expect(await rebuild(await replay(other, "t"))).toMatchObject({ messages: await other.getThreadMessages("t") });
  expect(await other.deleteThread("t")).toBe(true);
}

describe.each(["messages", "runs", "states"] as const)("a record of %s that reads as null (L7, L10, L19)", (store) => {
  test.each([0, 1, 2] as const)("of run %i: the thread opens whole, and takes the next run", async (run) => {
    const dbName = await spoiled(store, run);
    smallStack();
    await expectWhole(dbName);
  });
});

test.each<[string, (dbName: string) => Promise<void>]>([
  ["a run's record is gone", async (dbName) => (await rawOf(dbName)).delete("runs", ["t", 2])],
  [
    "an activity is none any more",
    async (dbName) => {
      const raw = await rawOf(dbName);
      const key = ["t", 2, 1] as [string, number, number];
      const record = (await raw.get("messages", key))!;
      await raw.put("messages", { ...record, message: { ...(record.message as object), content: null } });
    },
  ],
])("%s: the thread opens whole, and takes the next run (L7, L10)", async (_what, spoil) => {
  const dbName = await spoiled("states", 0);
  await spoil(dbName);
  await expectWhole(dbName);
});

test("a thread whose row in the list is not valid takes the next run, and keeps the row (L7)", async () => {
  const dbName = await spoiled("states", 0);
  const raw = await rawOf(dbName);
  const row = { ...(await raw.get("threads", "t"))!, title: 7 as never };
  await raw.put("threads", row);
  const runner = makeRunner({ dbName });
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "next") }));
  expect(await runner.getRun("next")).toMatchObject({ status: "finished" });
  expect(await raw.get("threads", "t")).toEqual(row);
});

test.each<[string, (dbName: string) => Promise<unknown>]>([
  ["not valid", async (dbName) => (await rawOf(dbName)).put("heads", { threadId: "t", epoch: "x" } as never)],
  ["not there", async (dbName) => (await rawOf(dbName)).delete("heads", "t")],
])("a thread whose head is %s can be deleted, and begun anew (L7)", async (_what, spoil) => {
  const dbName = await spoiled("states", 0);
  await spoil(dbName);
  const runner = makeRunner({ dbName });
  expect(await runner.deleteThread("t")).toBe(true);
  expect(await runner.deleteThread("t")).toBe(false);
  expect(await runner.getThreadMessages("t")).toEqual([]);
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "anew") }));
  expect((await runner.getThreadMessages("t")).map(({ id }) => id)).toEqual(["anew-u", "anew-a"]);
});
