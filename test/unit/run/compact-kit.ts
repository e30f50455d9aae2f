import type { BaseEvent, Message } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { expect } from "vitest";
import { compact } from "../../../src/run/compact-events.js";
import { Fold, type ThreadContent } from "../../../src/run/fold.js";
import { mustBeValid, referenceFold } from "./reference.js";
import { THREAD_ID } from "./streams.js";

export const NOTHING = { messages: [], state: {}, interrupts: [] };

export const started = (runId = "run", messages?: readonly object[]): BaseEvent => ({
  type: EventType.RUN_STARTED,
  threadId: THREAD_ID,
  runId,
  ...(messages && { input: { threadId: THREAD_ID, runId, messages, tools: [], context: [] } }),
});
export const finished = (runId = "run", outcome?: object): BaseEvent => ({
  type: EventType.RUN_FINISHED,
  threadId: THREAD_ID,
  runId,
  ...(outcome && { outcome }),
});
export const failed: BaseEvent = { type: EventType.RUN_ERROR, message: "no" };

export const start = (messageId: string, more: object = {}): BaseEvent => ({
  type: EventType.TEXT_MESSAGE_START,
  messageId,
  ...more,
});
export const text = (messageId: string, delta: string, more: object = {}): BaseEvent => ({
  type: EventType.TEXT_MESSAGE_CONTENT,
  messageId,
  delta,
  ...more,
});
export const end = (messageId: string): BaseEvent => ({ type: EventType.TEXT_MESSAGE_END, messageId });
export const thought = (messageId: string, delta: string): BaseEvent => ({
  type: EventType.REASONING_MESSAGE_CONTENT,
  messageId,
  delta,
});
export const callStart = (toolCallId: string, more: object = {}): BaseEvent => ({
  type: EventType.TOOL_CALL_START,
  toolCallId,
  toolCallName: "f",
  ...more,
});
export const args = (toolCallId: string, delta: string): BaseEvent => ({
  type: EventType.TOOL_CALL_ARGS,
  toolCallId,
  delta,
});
export const patch = (op: object, more: object = {}): BaseEvent => ({
  type: EventType.STATE_DELTA,
  delta: [op],
  ...more,
});
export const append = (value: unknown): BaseEvent => patch({ op: "add", path: "/list/-", value });
export const state = (snapshot: object, more: object = {}): BaseEvent => ({
  type: EventType.STATE_SNAPSHOT,
  snapshot,
  ...more,
});
export const activity = (messageId: string, content: object, more: object = {}): BaseEvent => ({
  type: EventType.ACTIVITY_SNAPSHOT,
  messageId,
  activityType: "plan",
  content,
  ...more,
});
export const activityPatch = (messageId: string, op: object, more: object = {}): BaseEvent => ({
  type: EventType.ACTIVITY_DELTA,
  messageId,
  activityType: "plan",
  patch: [op],
  ...more,
});
export const snapshot = (messages: readonly object[], more: object = {}): BaseEvent => ({
  type: EventType.MESSAGES_SNAPSHOT,
  messages,
  ...more,
});
export const custom = (name: string): BaseEvent => ({ type: EventType.CUSTOM, name, value: 1 });
export const user = (id: string, more: object = {}): Message => ({ id, role: "user", content: id, ...more });

export const many = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));

/** The runs of a log, each from its RUN_STARTED on. */
export function runsOf(events: readonly BaseEvent[]): BaseEvent[][] {
  const runs: BaseEvent[][] = [];
  for (const event of events) {
    if (event.type === EventType.RUN_STARTED) runs.push([]);
    runs[runs.length - 1]!.push(event);
  }
  return runs;
}

/** What a reader holds at the end of each run: by `@ag-ui/client`, and by the fold, which must agree. */
export async function read(events: readonly BaseEvent[], base: ThreadContent): Promise<ThreadContent[]> {
  const held: ThreadContent[] = [];
  const fold = new Fold(base);
  for (const run of runsOf(events)) {
    held.push(await referenceFold(held[held.length - 1] ?? base, run));
    for (const event of run) fold.apply(event);
    const { messages, state: folded, interrupts } = fold;
    expect({ messages, state: folded, interrupts }).toEqual(held[held.length - 1]);
  }
  return held;
}

/** Compacts, and checks everything that must hold of any log. */
export async function check(events: readonly BaseEvent[], base: ThreadContent = NOTHING): Promise<BaseEvent[]> {
  const given = structuredClone({ events, base });
  const compacted = compact(events, base);
  expect({ events, base }).toEqual(given);
  expect(await read(compacted, base)).toEqual(await read(events, base));
  await mustBeValid(compacted);
  expect(compact(compacted, base)).toEqual(compacted);
  expect({ events, base }).toEqual(given);
  return compacted;
}
