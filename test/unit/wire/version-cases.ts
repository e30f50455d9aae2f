import { EventType } from "@ag-ui/core";
import type { Event, Message } from "@ag-ui/core";

/** A stream that 1.0 allows, by what it shows. */
export interface Case {
  readonly name: string;
  readonly events: readonly Event[];
  /** How a client of 0.0.59 goes wrong with it as it is; absent where it does not. */
  readonly unmapped?: "rejects" | "misreads";
}

const RUN = { threadId: "t", runId: "r" };
const BASE = { timestamp: 1_700_000_000_000, rawEvent: { from: "provider" }, metadata: { k: null, deep: [{}] } };
const BY = { ...BASE, subagentRunId: "s" };

const started: Event = { type: EventType.RUN_STARTED, ...RUN };
const finished: Event = { type: EventType.RUN_FINISHED, ...RUN };
const run = (...events: Event[]): Event[] => [started, ...events, finished];
const ended = (...last: Event[]): Event[] => [started, ...last];

const subagent: Event = { type: EventType.SUBAGENT_STARTED, subagentRunId: "s", name: "helper" };
const subagentEnd: Event = { type: EventType.SUBAGENT_FINISHED, subagentRunId: "s" };
const inSubagent = (...events: Event[]): Event[] => run(subagent, ...events, subagentEnd);

const interrupts = [
  { id: "i1", reason: "ask" },
  {
    id: "i2",
    reason: "approve",
    message: "May I?",
    toolCallId: "c",
    responseSchema: { type: "object" },
    expiresAt: "2999-01-01T00:00:00Z",
    metadata: { k: 1 },
    subagentRunId: "s",
  },
];
const usage = [
  {},
  {
    provider: "p",
    model: "m",
    inputTokens: 1,
    outputTokens: 2,
    totalTokens: 3,
    reasoningTokens: 1,
    cachedInputTokens: 1,
    cacheWriteInputTokens: 1,
  },
];

/** A message of each role and shape that both versions know. */
const plainMessages: Message[] = [
  { id: "dev", role: "developer", content: "d", name: "n", encryptedValue: "e", metadata: { k: 1 } },
  { id: "sys", role: "system", content: "s" },
  { id: "user", role: "user", content: "u", name: "n" },
  {
    id: "parts",
    role: "user",
    content: [
      { type: "text", text: "look" },
      { type: "image", source: { type: "data", value: "AA==", mimeType: "image/png" }, metadata: { alt: "a" } },
      { type: "audio", source: { type: "url", value: "https://example.com/a", mimeType: "audio/ogg" } },
      { type: "video", source: { type: "url", value: "https://example.com/v" } },
      { type: "document", source: { type: "url", value: "https://example.com/d" }, metadata: "any" },
    ],
  },
  { id: "none", role: "user", content: [] },
  {
    id: "calls",
    role: "assistant",
    subagentRunId: "s",
    toolCalls: [
      { id: "c", type: "function", function: { name: "f", arguments: "{}" }, encryptedValue: "e", metadata: { k: 1 } },
    ],
  },
  { id: "said", role: "assistant", content: "a", toolCalls: [] },
  { id: "result", role: "tool", toolCallId: "c", content: "ok", error: "no", encryptedValue: "e", metadata: {} },
  { id: "plan", role: "activity", activityType: "plan", content: { steps: [1] }, metadata: { k: 1 } },
  { id: "hm", role: "reasoning", content: "hm", encryptedValue: "e", metadata: { k: 1 } },
];

/** Messages that only 1.0 knows. */
export const newMessages: Message[] = [
  {
    id: "tool parts",
    role: "tool",
    toolCallId: "c",
    content: [
      { type: "text", text: "one ", id: "p1" },
      { type: "image", source: { type: "url", value: "https://example.com/i" } },
      { type: "text", text: "two" },
    ],
  },
  {
    id: "file parts",
    role: "user",
    content: [
      { type: "text", text: "read", id: "p1" },
      {
        type: "document",
        source: { type: "file", value: "file-1", provider: "openai", mimeType: "application/pdf" },
        metadata: { filename: "a.pdf" },
      },
      { type: "image", source: { type: "file", value: "file-2" } },
    ],
  },
];

const tool = { name: "f", description: "d" };

export const CASES: readonly Case[] = [
  {
    name: "a text with all fields",
    events: inSubagent(
      { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant", name: "n", ...BY },
      { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "", ...BY },
      { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "\ud83d\n\u2028\r", ...BY },
      { type: EventType.TEXT_MESSAGE_END, messageId: "m", ...BY },
    ),
  },
  {
    name: "texts of all roles, and of none",
    events: run(
      ...([undefined, "developer", "system", "assistant", "user"] as const).flatMap((role): Event[] => [
        { type: EventType.TEXT_MESSAGE_START, messageId: `m ${role}`, ...(role && { role }) },
        { type: EventType.TEXT_MESSAGE_END, messageId: `m ${role}` },
      ]),
    ),
  },
  {
    name: "text chunks",
    events: inSubagent(
      { type: EventType.TEXT_MESSAGE_CHUNK, messageId: "m", role: "user", name: "n", delta: "a", ...BY },
      { type: EventType.TEXT_MESSAGE_CHUNK, delta: "b", ...BY },
      { type: EventType.TEXT_MESSAGE_CHUNK, messageId: "m2" },
    ),
  },
  {
    name: "a tool call with all fields, and its result as text",
    events: inSubagent(
      { type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName: "f", parentMessageId: "p", ...BY },
      { type: EventType.TOOL_CALL_ARGS, toolCallId: "c", delta: "{}", ...BY },
      { type: EventType.TOOL_CALL_END, toolCallId: "c", ...BY },
      { type: EventType.TOOL_CALL_RESULT, messageId: "r", toolCallId: "c", content: "ok", role: "tool", ...BY },
    ),
  },
  {
    name: "tool call chunks",
    events: inSubagent(
      { type: EventType.TOOL_CALL_CHUNK, toolCallId: "c", toolCallName: "f", parentMessageId: "p", delta: "{", ...BY },
      { type: EventType.TOOL_CALL_CHUNK, delta: "}", ...BY },
    ),
  },
  {
    name: "a tool's result in parts",
    unmapped: "rejects",
    events: run({
      type: EventType.TOOL_CALL_RESULT,
      messageId: "r",
      toolCallId: "c",
      content: [
        { type: "text", text: "one " },
        { type: "image", source: { type: "data", value: "AA==", mimeType: "image/png" } },
        { type: "text", text: "two" },
      ],
    }),
  },
  {
    name: "reasoning with all fields",
    events: inSubagent(
      { type: EventType.REASONING_START, messageId: "m", ...BY },
      { type: EventType.REASONING_MESSAGE_START, messageId: "m", role: "reasoning", ...BY },
      { type: EventType.REASONING_MESSAGE_CONTENT, messageId: "m", delta: "h", ...BY },
      { type: EventType.REASONING_MESSAGE_END, messageId: "m", ...BY },
      { type: EventType.REASONING_ENCRYPTED_VALUE, subtype: "message", entityId: "m", encryptedValue: "e", ...BY },
      { type: EventType.REASONING_END, messageId: "m", ...BY },
    ),
  },
  {
    name: "reasoning chunks",
    events: inSubagent(
      { type: EventType.REASONING_MESSAGE_CHUNK, messageId: "m", delta: "h", ...BY },
      { type: EventType.REASONING_MESSAGE_CHUNK, delta: "m", ...BY },
    ),
  },
  {
    name: "a state and its changes",
    events: inSubagent(
      { type: EventType.STATE_SNAPSHOT, snapshot: { a: null, list: [] }, ...BY },
      {
        type: EventType.STATE_DELTA,
        delta: [
          { op: "add", path: "/list/-", value: 0 },
          { op: "copy", from: "/list", path: "/copy" },
          { op: "move", from: "/a", path: "/b" },
          { op: "test", path: "/b", value: null },
          { op: "remove", path: "/b" },
          { op: "replace", path: "/list/0", value: { deep: false } },
        ],
        ...BY,
      },
      { type: EventType.STATE_DELTA, delta: [] },
    ),
  },
  ...[null, 0, "", false].flatMap((none): Case[] => [
    {
      name: `a state that becomes ${JSON.stringify(none)}`,
      unmapped: "misreads",
      events: run(
        { type: EventType.STATE_SNAPSHOT, snapshot: { old: 1 } },
        { type: EventType.STATE_SNAPSHOT, snapshot: none },
      ),
    },
    {
      name: `a state that is changed to ${JSON.stringify(none)}`,
      unmapped: "misreads",
      events: run(
        { type: EventType.STATE_SNAPSHOT, snapshot: { old: 1 } },
        { type: EventType.STATE_DELTA, delta: [{ op: "replace", path: "", value: none }] },
        {
          type: EventType.STATE_DELTA,
          delta: [
            { op: "test", path: "", value: none },
            { op: "add", path: "", value: none },
          ],
        },
      ),
    },
  ]),
  {
    name: "a state that is removed",
    unmapped: "misreads",
    events: run(
      { type: EventType.STATE_SNAPSHOT, snapshot: { old: 1 } },
      { type: EventType.STATE_DELTA, delta: [{ op: "remove", path: "" }] },
    ),
  },
  {
    name: "a state as a text, then as a list",
    events: run(
      { type: EventType.STATE_SNAPSHOT, snapshot: "text" },
      { type: EventType.STATE_DELTA, delta: [{ op: "replace", path: "", value: [1] }] },
    ),
  },
  {
    name: "a snapshot of messages that both know",
    events: inSubagent({ type: EventType.MESSAGES_SNAPSHOT, messages: plainMessages, ...BASE }),
  },
  ...newMessages.map((message): Case => ({
    name: `a snapshot with ${message.id}`,
    unmapped: "rejects",
    events: run({ type: EventType.MESSAGES_SNAPSHOT, messages: [message] }),
  })),
  {
    name: "activities",
    events: inSubagent(
      { type: EventType.ACTIVITY_SNAPSHOT, messageId: "m", activityType: "plan", content: { a: [] }, ...BY },
      {
        type: EventType.ACTIVITY_DELTA,
        messageId: "m",
        activityType: "plan",
        patch: [{ op: "add", path: "/a/-", value: 1 }],
        ...BY,
      },
      {
        type: EventType.ACTIVITY_SNAPSHOT,
        messageId: "m",
        activityType: "plan",
        content: { b: 1 },
        replace: false,
        ...BY,
      },
    ),
  },
  {
    name: "events of others",
    events: inSubagent(
      { type: EventType.RAW, event: null, source: "s", ...BY },
      { type: EventType.CUSTOM, name: "n", value: null, ...BY },
    ),
  },
  {
    name: "steps",
    events: inSubagent(
      { type: EventType.STEP_STARTED, stepName: "p", ...BY },
      { type: EventType.STEP_FINISHED, stepName: "p", ...BY },
    ),
  },
  {
    name: "subagents with all fields",
    events: run(
      { type: EventType.SUBAGENT_STARTED, subagentRunId: "s", name: "n" },
      {
        type: EventType.SUBAGENT_STARTED,
        subagentRunId: "s2",
        name: "n",
        description: "d",
        parentSubagentRunId: "s",
        parentToolCallId: "c",
        parentMessageId: "m",
        ...BASE,
      },
      { type: EventType.SUBAGENT_ERROR, subagentRunId: "s2", message: "no", code: "NO", ...BASE },
      { type: EventType.SUBAGENT_STARTED, subagentRunId: "s3", name: "n" },
      {
        type: EventType.SUBAGENT_FINISHED,
        subagentRunId: "s3",
        outcome: { type: "suspended", interruptIds: ["i"] },
        ...BASE,
      },
      { type: EventType.SUBAGENT_FINISHED, subagentRunId: "s", result: 1, outcome: { type: "success" } },
    ),
  },
  {
    name: "a run with all fields of its start and end",
    events: ended(
      { type: EventType.RUN_FINISHED, ...RUN, result: { n: 1 }, outcome: { type: "success" }, usage, ...BASE },
      {
        type: EventType.RUN_STARTED,
        ...RUN,
        runId: "r2",
        parentRunId: "r",
        protocolVersion: "1.0",
        input: {
          ...RUN,
          protocolVersion: "1.0",
          parentRunId: "r",
          state: { a: 1 },
          messages: plainMessages,
          tools: [tool, { ...tool, parameters: { type: "object" }, metadata: { k: 1 } }],
          context: [{ description: "d", value: "v" }],
          forwardedProps: { a: null },
          resume: [
            { interruptId: "i1", status: "cancelled" },
            { interruptId: "i2", status: "resolved", payload: false, metadata: { k: 1 } },
          ],
        },
        ...BASE,
      },
      { ...finished, runId: "r2" },
    ),
  },
  ...newMessages.map((message): Case => ({
    name: `an input with ${message.id}`,
    unmapped: "rejects",
    events: ended(
      { ...started, input: { ...RUN, messages: [message], tools: [], context: [], forwardedProps: {}, state: {} } },
      finished,
    ).slice(1),
  })),
  {
    name: "an input without the fields that may be left out",
    unmapped: "rejects",
    events: [
      // 1.0 takes it for an input without tools and context; its type is that of one that was parsed.
      { ...started, input: { ...RUN, messages: plainMessages } as unknown as NonNullable<(typeof started)["input"]> },
      finished,
    ],
  },
  {
    name: "a run that ends in interrupts",
    events: ended({ ...finished, outcome: { type: "interrupt", interrupts } }),
  },
  {
    name: "a run that leaves tool calls to the page",
    unmapped: "rejects",
    events: ended(
      { type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName: "f" },
      { type: EventType.TOOL_CALL_END, toolCallId: "c" },
      { ...finished, outcome: { type: "success", pendingToolCallIds: ["c"] } },
    ),
  },
  {
    name: "a stopped run",
    unmapped: "rejects",
    events: ended(
      { type: EventType.TEXT_MESSAGE_START, messageId: "m" },
      { type: EventType.TEXT_MESSAGE_END, messageId: "m" },
      { ...finished, outcome: { type: "cancelled" }, usage },
    ),
  },
  {
    name: "a run that failed",
    events: ended({ type: EventType.RUN_ERROR, message: "no", code: "NO", usage, ...BASE }),
  },
];
