import { EventType } from "@ag-ui/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { weigh } from "../../../src/run/size.js";
import { sharedMemoryHome } from "../../../src/runner/memory-home.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { memoryRunStore } from "../../../src/storage/memory/memory-run-store.js";
import { InMemoryAgentRunner } from "../../../src/runner/in-memory-agent-runner.js";
import { chunkOf, claimed, foreignEnd, settlement } from "../storage/kit.js";
import { agentOf, collect, counter, freshDb, inputOf, makeRunner } from "./kit.js";
import { nested, poisonedSuite, said, started } from "./poisoned.suite.js";

describe("IndexedDBAgentRunner", () => {
  poisonedSuite(() => {
    const dbName = freshDb();
    const store = indexedDBRunStore({ dbName });
    onTestFinished(() => store.close());
    return { store, open: () => makeRunner({ dbName }) };
  }, 1_000);
});

describe("InMemoryAgentRunner", () => {
  poisonedSuite(() => {
    const dbName = freshDb();
    const open = () => {
      const runner = new InMemoryAgentRunner({ dbName, stopGraceMs: 50 });
      onTestFinished(() => runner.destroy());
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
