import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import { describe, expect, onTestFinished, test } from "vitest";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { chunkOf, claimed, foreignEnd, settlement } from "../storage/kit.js";
import { agentOf, collect, counter, inputOf, rebuild, replay, user } from "./plain-kit.js";

/** A store as an older build left it, and a runner of this one over it. */
export interface OldLog {
  readonly store: RunStore;
  readonly open: () => LocalAgentRunner;
}

export const nested = (depth: number): unknown => {
  let value: unknown = 0;
  for (let n = 0; n < depth; n++) value = n % 2 === 0 ? [value] : { a: value };
  return value;
};

const delta = (...patch: unknown[]): BaseEvent => ({ type: EventType.STATE_DELTA, delta: patch });
const activity = (content: unknown): BaseEvent => ({
  type: EventType.ACTIVITY_SNAPSHOT,
  messageId: "plan",
  activityType: "plan",
  content,
});
const change = (...patch: unknown[]): BaseEvent => ({
  type: EventType.ACTIVITY_DELTA,
  messageId: "plan",
  activityType: "plan",
  patch,
});
const poison = { op: "move", from: "/toString", path: "/x" };
const bomb = Array.from({ length: 26 }, (_, n) => ({ op: "copy", from: "", path: `/${n}` }));

const loop = (): unknown => {
  const value: Record<string, unknown> = {};
  value["self"] = { one: value, other: [value, value] };
  return value;
};

export const said = (id: string): BaseEvent[] => [
  { type: EventType.TEXT_MESSAGE_START, messageId: id, role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId: id, delta: id },
  { type: EventType.TEXT_MESSAGE_END, messageId: id },
];

export const started = (runId: string): BaseEvent => ({ type: EventType.RUN_STARTED, threadId: "t", runId });
const ended = (runId: string): BaseEvent => ({ type: EventType.RUN_FINISHED, threadId: "t", runId });

/** @param depth the deepest value that the older build could store */
const cases = (depth: number): [string, BaseEvent[]][] => [
  ["a function moved into the state", [delta(poison)]],
  ["a function moved into an activity", [activity({}), change(poison)]],
  ["a patch bomb", [delta(...bomb)]],
  ["a patch bomb in an activity", [activity({}), change(...bomb)]],
  [
    "a state that many events double",
    [
      { type: EventType.STATE_SNAPSHOT, snapshot: { text: "x".repeat(50_000) } },
      ...Array.from({ length: 40 }, (_, n) => delta({ op: "copy", from: "", path: `/${n}` })),
    ],
  ],
  ["a deep event", [{ type: EventType.CUSTOM, name: "deep", value: nested(depth) }]],
  ["a deep state", [{ type: EventType.STATE_SNAPSHOT, snapshot: nested(depth) }]],
  ["a state made deep", [delta({ op: "add", path: "/deep", value: nested(depth - 10) })]],
  ["a deep activity", [activity({ deep: nested(depth - 10) })]],
  ["deep metadata", [{ ...said("meta")[0]!, metadata: { deep: nested(depth - 10) } }, ...said("meta").slice(1)]],
  ["a BigInt in the state", [{ type: EventType.STATE_SNAPSHOT, snapshot: { n: 7n, list: [{ n: Object(8n) }] } }]],
  ["a BigInt in a patch", [delta({ op: "add", path: "/n", value: 7n })]],
  ["bytes in the state", [{ type: EventType.STATE_SNAPSHOT, snapshot: { file: new Uint8Array(3) } }]],
  ["bytes in a patch", [delta({ op: "add", path: "/file", value: { bytes: new Uint8Array(3).buffer } })]],
  ["bytes and a BigInt in an activity", [activity({ file: new Uint8Array(3), n: 7n })]],
  [
    "bytes in metadata",
    [{ ...said("meta")[0]!, metadata: { file: new Uint8Array(3), n: 7n } }, ...said("meta").slice(1)],
  ],
  ["a BigInt in a custom event", [{ type: EventType.CUSTOM, name: "c", value: { n: 7n } }]],
  ["an activity that holds itself", [activity({ loop: loop() })]],
  ["an event that holds itself", [{ type: EventType.RAW, event: loop() }]],
  [
    "a state that holds itself",
    [{ type: EventType.STATE_SNAPSHOT, snapshot: loop() }, delta({ op: "add", path: "/a", value: 1 })],
  ],
];

/** Thread `t` with a run that went well and a run with these events. @param as how far the older build got with that */
async function leave(
  store: RunStore,
  events: readonly BaseEvent[],
  as: "settled by another host" | "left running",
  asked: Message = user("r1-u"),
): Promise<void> {
  const first = await claimed(store, "t", "r0", { holder: "old" });
  await store.append(first, chunkOf(first, 0, [started("r0")]));
  const message = (await store.input("t", 0))!.messages[0]!;
  const derived = { messages: [{ message }], rewritten: false, state: {}, interrupts: [] };
  const closing = { runStarted: started("r0"), customs: [], terminal: ended("r0") };
  await store.settle(first, settlement(first, 1, { derived, closing, chunk: chunkOf(first, 1, [ended("r0")]) }));
  const head = (await store.head("t"))!;
  const base = { activeRunIndex: head.activeRunIndex, epoch: head.epoch };
  const claim = await claimed(store, "t", "r1", { holder: "old", base, prevRunIndex: 0, input: { messages: [asked] } });
  await store.append(claim, chunkOf(claim, 0, [started("r1"), ...said("before"), ...events, ...said("after")]));
  if (as === "settled by another host") await store.settleForeign("t", "r1", "broken", 4_000, foreignEnd);
}

/** The thread opens, shows what can be read, to every reader the same, and takes the next run. */
async function expectOpen(runner: LocalAgentRunner, isLogTrue = true): Promise<void> {
  await runner.opened;
  const ids = (await runner.getThreadMessages("t")).map(({ id }) => id);
  expect(ids).toEqual(expect.arrayContaining(["u", "r1-u", "before", "after"]));
  await runner.getThreadState("t");
  expect((await runner.getMessagePage("t", { limit: 50 })).messages.map(({ id }) => id)).toEqual(ids);
  expect((await runner.getRunEvents("r1")).length).toBeGreaterThan(6);
  structuredClone(await runner.getThreadEvents("t"));
  structuredClone(await collect(runner.connect({ threadId: "t", replay: "last-run" })));

  await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "next") }));
  expect(await runner.getRun("next")).toMatchObject({ status: "finished" });
  const messages = await runner.getThreadMessages("t");
  const state = await runner.getThreadState("t");
  expect(messages.map(({ id }) => id)).toEqual([...ids, "next-u", "next-a"]);
  if (isLogTrue) expect(await rebuild(await replay(runner, "t"))).toEqual({ messages, state });
  const snapshot = runner.connect({ threadId: "t", replay: "snapshot" });
  expect(await rebuild(await collect(snapshot))).toEqual({ messages, state });
  // As a tab sends them again: they must be what a request may hold.
  expect(JSON.parse(JSON.stringify({ messages, state }))).toEqual({ messages, state });
  const again = inputOf("t", "again", [...messages, user("again-u")], state);
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: again }));
  expect(await runner.getRun("again")).toMatchObject({ status: "finished" });
  expect(await runner.deleteThread("t")).toBe(true);
}

/**
 * @param make opens the store of one test; what it hands to `finished` is done when that test is over
 * @param depth the deepest value that can be stored
 */
export function poisonedSuite(
  make: (finished: (close: () => Promise<void> | void) => void) => OldLog,
  depth: number,
): void {
  // Side by side: a reader of a run that was left running first waits for whoever may execute it.
  describe.concurrent.each(["settled by another host", "left running"] as const)(
    "a run that an older build recorded and that was %s (L7, L10, L19)",
    (as) => {
      test.for(cases(depth))("%s: the thread opens again", async ([_what, events], context) => {
        const { store, open } = make(context.onTestFinished);
        await leave(store, events, as);
        await expectOpen(open());
      });

      test("a message that was asked, with bytes and a BigInt: the thread opens again", async (context) => {
        const { store, open } = make(context.onTestFinished);
        const asked = { ...user("r1-u"), metadata: { file: new Uint8Array(3), n: 7n } } as Message;
        await leave(store, [], as, asked);
        await expectOpen(open());
      });

      test("a message that was asked, too deep: the thread opens again", async (context) => {
        const { store, open } = make(context.onTestFinished);
        const asked = { ...user("r1-u"), metadata: { deep: nested(depth - 10) } } as Message;
        await leave(store, [], as, asked);
        await expectOpen(open());
      });
    },
  );

  const STATES: Readonly<Record<string, unknown>> = {
    "too deep": nested(depth),
    "with a BigInt": { n: 7n },
    "with bytes": { file: new Uint8Array(3), list: [new Uint8Array(3)] },
  };
  test.each(Object.keys(STATES))("a state that an older build left, %s: the thread opens again", async (what) => {
    const { store, open } = make(onTestFinished);
    await leave(store, [], "left running");
    const { live } = (await store.head("t"))!;
    const { epoch } = (await store.run("t", live!.runIndex))!;
    const claim = { threadId: "t", runIndex: 1, runId: "r1", epoch, holder: "old" };
    const derived = { messages: ["r1-u", "before", "after"].map((id) => ({ message: user(id) })), rewritten: false };
    await store.settle(claim, settlement(claim, 7, { derived: { ...derived, state: STATES[what], interrupts: [] } }));
    await expectOpen(open(), false);
  });
}
