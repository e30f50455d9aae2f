import type { BaseEvent } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import { compact } from "../../../src/run/compact-events.js";
import {
  NOTHING,
  activity,
  activityPatch,
  append,
  check,
  custom,
  end,
  failed,
  finished,
  many,
  patch,
  snapshot,
  start,
  started,
  state,
  text,
  user,
} from "./compact-kit.js";

describe("state", () => {
  const base = { ...NOTHING, state: { list: [] as unknown[], count: 0 } };

  test("deltas without a snapshot become one snapshot, from the true base (L4)", async () => {
    const events = [started(), ...many(20, append), custom("x"), append(20), finished()];
    expect(await check(events, base)).toEqual([
      started(),
      custom("x"),
      state({ list: many(21, (n) => n), count: 0 }),
      finished(),
    ]);
  });

  test("8,000 list appends become one snapshot", () => {
    const compacted = compact([started(), ...many(8_000, (n) => append({ n })), finished()], base);
    expect(compacted.slice(1, -1)).toEqual([state({ list: many(8_000, (n) => ({ n })), count: 0 })]);
  });

  test("few small deltas on a large state stay as they are, each run its own", async () => {
    const large = { ...base, state: { ...base.state, text: "x".repeat(5_000) } };
    const run = (runId: string): BaseEvent[] => [started(runId), append(1), append(2), finished(runId)];
    const events = [...run("1"), ...run("2")];
    expect(await check(events, large)).toEqual(events);
  });

  test("objects of many keys are judged right, also after most keys are gone", async () => {
    const keys = (count: number): object => Object.fromEntries(many(count, (n) => [`k${n}`, n]));
    const large = { ...base, state: { rows: keys(300) } };
    const tick = (runId: string): BaseEvent[] => [
      started(runId),
      ...many(2, (n) => patch({ op: "add", path: "/rows/k0", value: n })),
      finished(runId),
    ];
    const removals = many(299, (n) => patch({ op: "remove", path: `/rows/k${n + 1}` }));
    const clear = [started("3"), ...removals, finished("3")];
    expect(await check([...tick("1"), ...tick("2"), ...clear, ...tick("4")], large)).toEqual([
      ...tick("1"),
      ...tick("2"),
      started("3"),
      state({ rows: { k0: 1 } }),
      finished("3"),
      started("4"),
      state({ rows: { k0: 1 } }),
      finished("4"),
    ]);
  });

  test("a snapshot says more than the deltas before it and after it", async () => {
    const events = [started(), append(1), state({ list: [7] }, { timestamp: 1 }), append(8), failed];
    expect(await check(events, base)).toEqual([started(), state({ list: [7, 8] }), failed]);
  });

  test("a patch that does not apply is left out, and a single event stays what it is", async () => {
    const refused = patch({ op: "replace", path: "/no/way", value: 1 });
    const events = [started(), refused, append(1), refused, finished()];
    const compacted = await check(events, base);
    expect(compacted).toEqual([started(), append(1), finished()]);
    expect(compacted[1]).toBe(events[2]);
  });

  test("metadata comes together, a common owner and the last time stay, a rawEvent is not merged", async () => {
    const owner = { subagentRunId: "s" };
    const raw = patch({ op: "add", path: "/list/-", value: 3 }, { rawEvent: { id: 7 } });
    const events = [
      started(),
      state({ list: [1] }, { metadata: { x: 1, y: 1 }, timestamp: 1, ...owner }),
      patch({ op: "add", path: "/list/-", value: 2 }, { metadata: { x: 2 }, timestamp: 2, ...owner }),
      raw,
      state({ list: [4] }, owner),
      append(5),
      finished(),
    ];
    expect((await check(events)).slice(1, -1)).toEqual([
      state({ list: [1, 2] }, { metadata: { x: 2, y: 1 }, timestamp: 2, ...owner }),
      raw,
      state({ list: [4, 5] }),
    ]);
  });

  test("keys of prototypes pollute nothing", () => {
    const polluting = JSON.parse('{"list":[],"__proto__":{"polluted":1}}') as object;
    const events = [
      started(),
      state(polluting),
      patch({ op: "add", path: "/__proto__/polluted", value: 1 }),
      patch({ op: "add", path: "/constructor/prototype/polluted", value: 1 }),
      append(1),
      finished(),
    ];
    const compacted = compact(events);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(JSON.stringify(compacted[1]!["snapshot"])).toBe('{"list":[1],"__proto__":{"polluted":1}}');
  });

  test("what is returned does not change when later runs go on with the state", () => {
    const run = (runId: string): BaseEvent[] => [started(runId), ...many(9, append), finished(runId)];
    const compacted = compact([...run("1"), ...run("2")], base);
    expect(compacted[1]).toEqual(state({ list: many(9, (n) => n), count: 0 }));
  });
});

describe("activities", () => {
  const add = (messageId: string, value: number, more: object = {}): BaseEvent =>
    activityPatch(messageId, { op: "add", path: "/list/-", value }, more);

  test("one snapshot takes the place of the first, so that the message keeps its place", async () => {
    const more = { metadata: { x: 1, y: 1 }, timestamp: 1, subagentRunId: "s" };
    const events = [
      started(),
      activity("a", { list: [] }, more),
      start("m"),
      end("m"),
      ...many(9, (n) => add("a", n, { activityType: "search" })),
      activity("a", { ignored: 1 }, { replace: false, metadata: { x: 2 } }),
      finished(),
    ];
    expect(await check(events)).toEqual([
      started(),
      activity("a", { list: many(9, (n) => n) }, { ...more, activityType: "search", metadata: { x: 2, y: 1 } }),
      start("m"),
      end("m"),
      finished(),
    ]);
  });

  test("one that replace: false begins, is begun by the snapshot", async () => {
    const events = [started(), activity("a", { list: [] }, { replace: false }), ...many(9, (n) => add("a", n)), failed];
    expect(await check(events)).toEqual([started(), activity("a", { list: many(9, (n) => n) }), failed]);
  });

  test("few small deltas on a large content stay as they are", async () => {
    const events = [
      started(),
      activity("a", { list: [], text: "x".repeat(500) }),
      snapshot([user("u")]),
      add("a", 1),
      add("a", 2),
      failed,
    ];
    expect(await check(events)).toEqual(events);
  });

  test("deltas on an activity of an earlier run stay: whose it is, the run has not said", async () => {
    const message = { id: "a", role: "activity", activityType: "plan", content: { list: [] } } as const;
    const deltas = many(3, (n) => add("a", n));
    const later = [activity("b", {}), add("a", 3, { subagentRunId: "s" })];
    const events = [started(), ...deltas, snapshot([user("u")]), ...later, failed];
    expect(await check(events, { ...NOTHING, messages: [message] })).toEqual(events);
    const two = [started("1"), activity("a", { list: [] }), failed, started("2"), ...deltas, failed];
    expect(await check(two)).toEqual(two);
    const ignored = activity("a", {}, { replace: false, subagentRunId: "s" });
    const contradicted = [started(), ignored, ...deltas, add("a", 3, { subagentRunId: "s" }), failed];
    expect(await check(contradicted, { ...NOTHING, messages: [message] })).toEqual(contradicted);
  });

  test("where a MESSAGES_SNAPSHOT or the input has said whose it is, they become a snapshot", async () => {
    const message = { id: "a", role: "activity", activityType: "plan", content: { list: [] }, subagentRunId: "s" };
    const deltas = many(9, (n) => add("a", n));
    const merged = activity("a", { list: many(9, (n) => n) }, { subagentRunId: "s" });
    for (const first of [[started(), snapshot([message])], [started("run", [message])]]) {
      expect(await check([...first, ...deltas, failed])).toEqual([...first, merged, failed]);
    }
  });

  test("an id that another message holds, and a content that is no object, are left alone", async () => {
    const taken = [
      started(),
      add("u", 1),
      activity("u", {}, { replace: false }),
      activity("u", { x: 1 }),
      add("u", 2),
      failed,
    ];
    expect(await check(taken, { ...NOTHING, messages: [user("u")] })).toEqual(taken);
    // Only older builds have recorded it.
    const list = [started(), activity("a", {}), activityPatch("a", { op: "replace", path: "", value: [1] }), failed];
    expect(compact(list, NOTHING)).toEqual([started(), activity("a", {}), failed]);
  });

  test("what passes none: a rawEvent, text of the same id, a MESSAGES_SNAPSHOT", async () => {
    for (const between of [
      [add("a", 1, { rawEvent: { id: 7 } })],
      [start("a"), text("a", "x"), end("a")],
      [snapshot([{ id: "a", role: "user", content: "" }])],
    ]) {
      const events = [started(), activity("a", { list: [] }), ...between, activity("a", { list: [] }), failed];
      expect(await check(events)).toEqual(events);
    }
  });
});
