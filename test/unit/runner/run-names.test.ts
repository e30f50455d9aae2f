import { EventType, type BaseEvent } from "@ag-ui/client";
import { describe, expect, test, vi } from "vitest";
import {
  eventsOfFrame,
  agentOf,
  collect,
  framesUntil,
  freshDb,
  inputOf,
  makeRunner,
  PRESETS,
  rebuild,
  user,
} from "./kit.js";

type Runner = ReturnType<(typeof PRESETS)[number][1]>;

const said = (messageId: string, delta: string): BaseEvent[] => [
  { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta },
  { type: EventType.TEXT_MESSAGE_END, messageId },
];

async function run(runner: Runner, runId: string, events: readonly BaseEvent[]): Promise<void> {
  const agent = agentOf(async function* () {
    yield* events;
  });
  const input = inputOf("t", runId, [user(`${runId}-u`, "go")]);
  await collect(runner.run({ threadId: "t", agent, input }));
}

/** As a front end notes it: the run of the first snapshot that has the id. */
async function namesIn(runner: Runner): Promise<{ readonly runOf: Record<string, string>; readonly ids: string[] }> {
  const frames = await framesUntil(runner, { threadId: "t", named: true });
  const events = frames.flatMap(eventsOfFrame);
  const runOf: Record<string, string> = {};
  let runId = "";
  for (const event of events) {
    if (event.type === EventType.RUN_STARTED) runId = String(event["runId"]);
    if (event.type !== EventType.MESSAGES_SNAPSHOT) continue;
    for (const { id } of event["messages"] as { id: string }[]) runOf[id] ??= runId;
  }
  const { messages } = await rebuild(events);
  expect(messages).toEqual(await runner.getThreadMessages("t"));
  return { runOf, ids: messages.map(({ id }) => id) };
}

describe.each(PRESETS)("%s", (_name, make) => {
  test("a message that later runs change, or tell again, stays that of the run that added it", async () => {
    const dbName = freshDb();
    const runner = make({ dbName });
    await run(runner, "r0", said("a0", "one"));
    await run(runner, "r1", [...said("a1", "two"), ...said("a0", " and more")]);
    const whole = await runner.getThreadMessages("t");
    // Without the first message, so that the whole thread is told anew.
    await run(runner, "r2", [
      { type: EventType.MESSAGES_SNAPSHOT, messages: [...whole.slice(1), user("r2-u", "go")] },
      ...said("a2", "three"),
    ]);
    await run(runner, "r3", said("a1", " again"));

    const named = {
      ids: ["a0", "r1-u", "a1", "r2-u", "a2", "r3-u"],
      runOf: { a0: "r0", "r1-u": "r1", a1: "r1", "r2-u": "r2", a2: "r2", "r3-u": "r3" },
    };
    expect(await namesIn(runner)).toEqual(named);
    // From the log alone.
    expect(await namesIn(make({ dbName }))).toEqual(named);
  });

  test("what runs added that were cut off is of the run that is left of them", async () => {
    const runner = make({ dbName: freshDb(), limits: { maxRunsPerThread: 2 } });
    for (const n of [0, 1, 2, 3, 4, 5]) await run(runner, `r${n}`, said(`a${n}`, "x"));
    const runs = await vi.waitFor(async () => {
      const left = await runner.listRuns("t");
      expect(left.length).toBeLessThanOrEqual(3);
      return left;
    });
    const { runOf, ids } = await namesIn(runner);
    expect(ids).toHaveLength(12);
    expect(runOf["a5"]).toBe("r5");
    expect(runOf["a0"]).toBe(runs.at(-1)?.runId);
  });

  test("a thread of one run, and a reader of the last messages, are told nothing more", async () => {
    const runner = make({ dbName: freshDb() });
    await run(runner, "r0", said("a0", "one"));
    expect(await framesUntil(runner, { threadId: "t", named: true })).toEqual(
      await framesUntil(runner, { threadId: "t" }),
    );
    await run(runner, "r1", said("a1", "two"));
    const some = { threadId: "t", limit: 2 };
    expect(await framesUntil(runner, { ...some, named: true })).toEqual(await framesUntil(runner, some));
  });
});

test("records of older builds, which do not say who added a message, are read as far as they tell", async () => {
  const dbName = freshDb();
  const runner = makeRunner({ dbName });
  await run(runner, "r0", said("a0", "one"));
  await run(runner, "r1", [...said("a1", "two"), ...said("a0", " and more")]);
  await run(runner, "r2", said("a2", "three"));
  await runner.close();
  const database = await new Promise<IDBDatabase>((resolve, reject) => {
    const opening = indexedDB.open(dbName);
    opening.addEventListener("success", () => resolve(opening.result));
    opening.addEventListener("error", () => reject(opening.error));
  });
  const removed = await new Promise<number>((resolve) => {
    let count = 0;
    const tx = database.transaction("messages", "readwrite");
    tx.objectStore("messages")
      .openCursor()
      .addEventListener("success", function () {
        const cursor = this.result;
        if (cursor === null) return;
        const { addedBy, ...older } = cursor.value as Record<string, unknown>;
        if (addedBy !== undefined) count++;
        cursor.update(older);
        cursor.continue();
      });
    tx.addEventListener("complete", () => resolve(count));
  });
  database.close();
  expect(removed).toBe(1);
  const { runOf } = await namesIn(makeRunner({ dbName }));
  expect(runOf).toMatchObject({ a0: "r0", a1: "r1", a2: "r2" });
});
