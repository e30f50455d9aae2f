import { EventType, verifyEvents, type BaseEvent, type Message } from "@ag-ui/client";
import { expect, test, vi } from "vitest";
import { agentOf, collect, gated, inputOf, makeRunner, rebuild, replay, user } from "./kit.js";

/*
 * Events may say which subagent they are of (`subagentRunId`). Whoever is shown a message first, by a run's input or by a
 * snapshot, must not be handed an event of that message that says another one: clients reject it.
 */

const MESSAGES: readonly Message[] = [
  user("u"),
  { id: "said", role: "assistant", content: "", subagentRunId: "mine" },
  {
    id: "called",
    role: "assistant",
    toolCalls: [{ id: "c", type: "function", function: { name: "f", arguments: "" } }],
  },
  { id: "thought", role: "reasoning", content: "", subagentRunId: "mine" },
  { id: "act", role: "activity", activityType: "plan", content: { n: 0 } },
];
const ids = MESSAGES.map(({ id }) => id);

/** Of a subagent that none of the messages above is of. */
const of = (type: EventType, more: object): BaseEvent => ({ type, subagentRunId: "s", ...more });

const text = (messageId: string): BaseEvent[] => [
  of(EventType.TEXT_MESSAGE_START, { messageId, role: "assistant" }),
  of(EventType.TEXT_MESSAGE_CONTENT, { messageId, delta: "more" }),
  of(EventType.TEXT_MESSAGE_END, { messageId }),
];
const call = (toolCallId: string, parentMessageId?: string): BaseEvent[] => [
  of(EventType.TOOL_CALL_START, {
    toolCallId,
    toolCallName: "f",
    ...(parentMessageId !== undefined && { parentMessageId }),
  }),
  of(EventType.TOOL_CALL_ARGS, { toolCallId, delta: "{}" }),
  of(EventType.TOOL_CALL_END, { toolCallId }),
];
const STREAMS: Readonly<Record<string, readonly BaseEvent[]>> = {
  "text of the user's message": text("u"),
  "text of a message of another subagent": text("said"),
  "a new call in a message": call("new", "said"),
  "a call again": call("c"),
  "a call again, in a message of another one": call("c", "said"),
  reasoning: [
    of(EventType.REASONING_START, { messageId: "thought" }),
    of(EventType.REASONING_MESSAGE_START, { messageId: "thought", role: "reasoning" }),
    of(EventType.REASONING_MESSAGE_CONTENT, { messageId: "thought", delta: "hm" }),
    of(EventType.REASONING_MESSAGE_END, { messageId: "thought" }),
    of(EventType.REASONING_END, { messageId: "thought" }),
  ],
  "an encrypted value": [
    of(EventType.REASONING_ENCRYPTED_VALUE, { subtype: "message", entityId: "said", encryptedValue: "x" }),
  ],
  "an encrypted value of a call": [
    of(EventType.REASONING_ENCRYPTED_VALUE, { subtype: "tool-call", entityId: "c", encryptedValue: "x" }),
  ],
  "a patch of an activity": [
    of(EventType.ACTIVITY_DELTA, {
      messageId: "act",
      activityType: "plan",
      patch: [{ op: "replace", path: "/n", value: 1 }],
    }),
  ],
};

test.each(Object.entries(STREAMS))("%s, which the run's input has (L3)", async (_, stream) => {
  const runner = makeRunner();
  const agent = agentOf(async function* () {
    yield* stream;
  });
  const events = await collect(
    runner.run({ threadId: "t", agent, input: inputOf("t", "r", [...MESSAGES]) }).pipe(verifyEvents()),
  );
  expect(events.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED });
  const { messages } = await rebuild(await replay(runner, "t"));
  expect(messages).toEqual((await rebuild(events)).messages);
});

test.each(Object.entries(STREAMS))("%s, which a snapshot of the live run has (L2, L3)", async (_, stream) => {
  const runner = makeRunner();
  const idle = agentOf(async function* () {});
  await collect(runner.run({ threadId: "t", agent: idle, input: inputOf("t", "r1", [...MESSAGES]) }));
  const { gate, letOn } = gated();
  const agent = agentOf(async function* () {
    yield stream[0]!;
    await gate;
    yield* stream.slice(1);
  });
  const live = collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r2", [user("u2")]) }));
  await vi.waitFor(async () => expect(await runner.getRunEvents("r2")).toHaveLength(2));
  const seen: BaseEvent[] = [];
  const reading = runner.connect({ threadId: "t", replay: "snapshot" }).pipe(verifyEvents());
  const read = new Promise<void>((resolve, reject) => {
    reading.subscribe({
      next: (event) => {
        seen.push(event);
        if (event.type === EventType.MESSAGES_SNAPSHOT) letOn();
      },
      error: reject,
      complete: resolve,
    });
  });
  await Promise.all([live, read]);
  expect((await rebuild(seen)).messages).toEqual((await rebuild(await replay(runner, "t"))).messages);
  expect((await rebuild(seen)).messages.map(({ id }) => id)).toEqual([...ids, "u2"]);
});
