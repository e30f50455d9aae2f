import "fake-indexeddb/auto";
import { EventType } from "@ag-ui/client";
import { describe, expect, onTestFinished, test } from "vitest";
import { bareEnd } from "../../../src/run/bare-end.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { freshDb } from "../runner/kit.js";
import { baseAt, chunkOf, claimed, delta, foreignEnd, leaving, request, withRuns } from "../storage/kit.js";
import { dumpOf } from "../storage/raw.js";
import { eventsOf } from "../storage/stores.js";
import { waiting } from "../storage/waiting.suite.js";
import { closing } from "../storage/write-cases.js";
import { encryption } from "./fast-key.js";
import { isFound, reopened, restored, sealedDump } from "./kit.js";

const base = await sealedDump();
const OPEN = {
  textMessages: ["m"],
  reasoningSpans: [],
  reasoningMessages: [],
  toolCalls: [{ toolCallId: "call" }],
  unanswered: [],
  steps: [],
  subagents: [],
};

describe.each([
  ["without an encryption", {}],
  ["whose encryption is locked", { encryption: {} }],
])("a host %s", (_what, options) => {
  test("is told that the database is locked, and writes nothing plain into it", async () => {
    const { store, db, dbName } = await restored(base, options);
    const before = await dumpOf(db as never);
    const locked = { code: "locked" };
    const head = (await store.head("d-calls"))!;
    const { epoch } = (await store.head("a-cut"))!;
    for (const attempt of [
      () => store.thread("d-calls"),
      () => store.threads({ limit: 9, archived: false }),
      () => store.input("d-calls", 0),
      () => store.closing("d-calls", 0),
      () => store.chunks("d-calls", 0, -1, 10),
      () => store.messageRows("d-calls", 0, undefined),
      () => store.messagePage("d-calls", 0, undefined, { before: undefined, limit: 2 }),
      () => store.stateAfter("d-calls", 0),
      () => store.toolResults(head),
      () => store.waitingRuns("d-calls", 10),
      () => store.claim(request("new", "planted", { title: "planted" })),
      () => store.addWaiting(waiting("planted", { threadId: "new", request: { says: "planted" } }), 10),
      () => store.updateWaiting("d-calls", "w1", { error: { code: "host-failed", message: "planted" } }),
      () => store.updateThread("d-calls", { title: "planted" }),
      () => store.updateThread("d-calls", { pinned: true }),
      () =>
        store.changeToolCall(
          "d-calls",
          "call-2",
          (call, result) => ({ is: "changed", call: { ...call, status: "answered", result } }),
          { id: "x", role: "tool", toolCallId: "call-2", content: "planted" },
        ),
      () => store.derive("b-varied", 4, closing, leaving("planted", "planted", {})),
      () => store.cut("a-cut", epoch, baseAt(2)),
    ]) {
      await expect(attempt(), String(attempt)).rejects.toMatchObject(locked);
    }
    expect(await dumpOf(db as never)).toEqual(before);
    expect(await isFound(dbName, "planted")).toBe(false);
    // What needs no content goes on.
    expect(await store.deleteThread("d-calls")).toBe(true);
  });

  test("ends the run of a host that is gone, and who has the key reads the end (L9)", async () => {
    const { store, dbName } = await restored(base, options);
    expect(await store.settleForeign("b-varied", "r5", "broken", 9_000, foreignEnd)).toMatchObject({
      status: "broken",
    });
    const keyed = indexedDBRunStore({ dbName, encryption });
    onTestFinished(() => keyed.close());
    const read = (await keyed.chunks("b-varied", 5, -1, Infinity)).flatMap(({ entries }) => entries);
    expect(read.slice(-4).map(({ event }) => event.type)).toEqual([
      EventType.TOOL_CALL_END,
      EventType.TOOL_CALL_RESULT,
      EventType.STEP_FINISHED,
      EventType.RUN_ERROR,
    ]);
  });
});

test("a host that began without a key when there was none is refused from then on", async () => {
  const dbName = freshDb();
  const plain = indexedDBRunStore({ dbName });
  const keyed = indexedDBRunStore({ dbName, encryption });
  onTestFinished(async () => void (await Promise.all([plain.close(), keyed.close()])));
  await withRuns(plain, "t", ["r0"]);
  const live = await claimed(plain, "u", "r0");
  await withRuns(keyed, "v", ["r0"]);
  await expect(plain.updateThread("t", { title: "planted" })).rejects.toMatchObject({ code: "locked" });
  await expect(plain.addWaiting(waiting("w", { threadId: "t" }), 9)).rejects.toMatchObject({ code: "locked" });
  await expect(plain.claim(request("w", "r0"))).rejects.toMatchObject({ code: "locked" });
  // It goes on with what it has begun.
  await plain.append(live, chunkOf(live, 0, [delta("going on")]));
  expect(await eventsOf({ ...keyed, chunks: (_thread, ...of) => keyed.chunks("u", ...of) }, 0)).toEqual(["0 going on"]);
});

describe("an end that was written without the key", () => {
  const ends = [
    { event: { type: EventType.TEXT_MESSAGE_END, messageId: "m", rawEvent: "forged" } },
    { event: { type: EventType.TOOL_CALL_RESULT, messageId: "x", toolCallId: "call", content: "forged" } },
    { event: { type: EventType.RUN_ERROR, message: "forged", code: "RUN_BROKEN", rawEvent: { forged: 1 } } },
  ];

  async function ended(entries: unknown, change: (chunk: object) => object = (chunk) => chunk) {
    const { store, db } = await reopened({});
    onTestFinished(() => store.close());
    const claim = await claimed(store, "t", "r0");
    await store.append(claim, chunkOf(claim, 0, [delta("said")], OPEN));
    const run = await store.settleForeign("t", "r0", "broken", 4_000, (row, nextSeq) => ({
      ...chunkOf(
        { ...claim, epoch: row.epoch },
        nextSeq,
        [delta("a"), delta("b"), delta("c")].map((event, n) => ({ ...event, messageId: `${n}` })),
      ),
      entries: entries as never,
    }));
    const chunk = (await db.getAll("chunks")).at(-1);
    await db.put("chunks", change(chunk));
    db.close();
    return { store, run };
  }

  test("is read, without any text in it", async () => {
    const { store } = await ended(ends);
    const chunks = await store.chunks("t", 0, -1, 10);
    expect(JSON.stringify(chunks)).toContain("said");
    expect(JSON.stringify(chunks)).not.toContain("forged");
    expect(chunks.at(-1)!.entries.map(({ event }) => event.type)).toEqual(ends.map(({ event }) => event.type));
  });

  test.each<[string, unknown]>([
    ["that says something", [{ event: delta("forged") }, ends[1], ends[2]]],
    ["that does not end", [ends[0], ends[1], ends[0]]],
    ["that ends twice", [ends[0], ends[2], ends[2]]],
    ["of another kind", [ends[0], ends[1], { event: { type: EventType.RUN_FINISHED } }]],
    ["that is packed", [ends[0], { ...ends[1], cuts: [1] }, ends[2]]],
    ["that is none", "forged"],
  ])("is refused if it is one %s", async (_what, entries) => {
    const { store } = await ended(entries);
    await expect(store.chunks("t", 0, -1, 10)).rejects.toMatchObject({ code: "corrupt-record" });
  });

  test("is refused in the place of what a run that ended by itself has said", async () => {
    const { store, db } = await restored({});
    await withRuns(store, "t", ["r0"]);
    const [first, last] = await db.getAll("chunks");
    for (const chunk of [first, last]) {
      await db.put("chunks", { ...chunk, entries: [{ event: { type: EventType.RUN_FINISHED } }] });
      await expect(store.chunks("t", 0, -1, 10)).rejects.toMatchObject({ code: "corrupt-record" });
      await db.put("chunks", chunk);
    }
  });

  test("is refused in the place of what a run had said before it was ended", async () => {
    const { store, db } = await restored({});
    const claim = await claimed(store, "t", "r0");
    await store.append(claim, chunkOf(claim, 0, [delta("said")], OPEN));
    await store.settleForeign("t", "r0", "broken", 4_000, foreignEnd);
    const [first] = await db.getAll("chunks");
    await db.put("chunks", { ...first, entries: [ends[2]] });
    await expect(store.chunks("t", 0, -1, 10)).rejects.toMatchObject({ code: "corrupt-record" });
  });

  test("of each status is what is made again of it", () => {
    for (const status of ["stopped", "superseded"] as const) {
      const terminal = { type: EventType.RUN_FINISHED, threadId: "t", runId: "r", outcome: { type: "cancelled" } };
      expect(bareEnd([{ event: terminal }], status)).toEqual([{ event: terminal }]);
    }
    expect(bareEnd([{ event: { type: EventType.RUN_FINISHED } }], "finished")).toBeUndefined();
    expect(bareEnd([], "broken")).toBeUndefined();
  });
});
