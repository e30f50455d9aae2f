import type { RunAgentInput } from "@ag-ui/client";
import type { SettledStatus } from "../../../src/run/types.js";

/** Stand for the ids of the run that is asked for, wherever they occur in a stream. */
export const THREAD = "$thread";
export const RUN = "$run";

/** An event as it stands on the wire: anything. */
export type Raw = Readonly<Record<string, unknown>>;

/** One request, and what its agent's server streams. */
export interface Turn {
  /** What the request has besides its ids. */
  readonly input?: Partial<RunAgentInput>;
  /** Sent verbatim, but for the ids above. */
  readonly stream: readonly Raw[];
}

/** What every reader must have after the last turn. What is absent is not looked at. */
export interface Led {
  readonly status: SettledStatus;
  /** Code of the RUN_ERROR; `null`: it has none. */
  readonly code?: string | null;
  /** Part of the RUN_ERROR's message. */
  readonly says?: string;
  /** Those after the user's, in order; fields that are not named are not looked at. */
  readonly messages?: readonly Raw[] | undefined;
  readonly state?: unknown;
  /** Ids of the open interrupts. */
  readonly interrupts?: readonly string[];
  /** Types that the log must not hold. */
  readonly without?: readonly string[];
  /** What the event of a type (the first one) holds in the log. */
  readonly events?: Readonly<Record<string, Raw>>;
  /** Fields that the first event of a type must not have. */
  readonly absent?: Readonly<Record<string, readonly string[]>>;
  /** Tool calls that wait for the page. */
  readonly pending?: readonly string[];
}

export interface SpecStream extends Led {
  readonly name: string;
  /** Earlier turns of the thread, each of which must finish. */
  readonly before?: readonly Turn[];
  readonly input?: Partial<RunAgentInput>;
  readonly stream: readonly Raw[];
}

/** What a run is told of a stream that breaks the protocol. */
export const REJECTED = "INVALID_STREAM";
export const TRUNCATED = "INCOMPLETE_STREAM";

const STARTED: Raw = { type: "RUN_STARTED", threadId: THREAD, runId: RUN };
const FINISHED: Raw = { type: "RUN_FINISHED", threadId: THREAD, runId: RUN };
const OTHER: Raw = { type: "RUN_STARTED", threadId: THREAD, runId: "other" };
const failed = (message: string, rest: Raw = {}): Raw => ({ type: "RUN_ERROR", message, ...rest });

const opens = (messageId: string, rest: Raw = {}): Raw => ({
  type: "TEXT_MESSAGE_START",
  messageId,
  role: "assistant",
  ...rest,
});
const adds = (messageId: string, delta: string, rest: Raw = {}): Raw => ({
  type: "TEXT_MESSAGE_CONTENT",
  messageId,
  delta,
  ...rest,
});
const ends = (messageId: string, rest: Raw = {}): Raw => ({ type: "TEXT_MESSAGE_END", messageId, ...rest });
const says = (messageId: string, text: string, rest: Raw = {}): Raw[] => [
  opens(messageId, rest),
  adds(messageId, text),
  ends(messageId),
];
const run = (...events: readonly Raw[]): Raw[] => [STARTED, ...events, FINISHED];

const calls = (toolCallId: string, toolCallName: string, args = "{}", rest: Raw = {}): Raw[] => [
  { type: "TOOL_CALL_START", toolCallId, toolCallName, ...rest },
  { type: "TOOL_CALL_ARGS", toolCallId, delta: args },
  { type: "TOOL_CALL_END", toolCallId },
];
const state = (snapshot: unknown): Raw => ({ type: "STATE_SNAPSHOT", snapshot });
const patch = (...delta: readonly unknown[]): Raw => ({ type: "STATE_DELTA", delta });
const activity = (messageId: string, content: unknown, rest: Raw = {}): Raw => ({
  type: "ACTIVITY_SNAPSHOT",
  messageId,
  activityType: "search",
  content,
  ...rest,
});
const asks = (...ids: readonly string[]): Raw => ({
  ...FINISHED,
  outcome: { type: "interrupt", interrupts: ids.map((id) => ({ id, reason: "approval" })) },
});

const answer = (id: string, content: string): Raw => ({ id, role: "assistant", content });
const ok = [answer("m", "fine")];
const fine = says("m", "fine");

/** Ends badly because the stream is no stream of AG-UI; what came before stays. */
const rejected = (name: string, stream: readonly Raw[], rest: Partial<SpecStream> = {}): SpecStream => ({
  name,
  stream,
  status: "errored",
  code: REJECTED,
  messages: ok,
  ...rest,
});
const accepted = (name: string, stream: readonly Raw[], rest: Partial<SpecStream> = {}): SpecStream => ({
  name,
  stream,
  status: "finished",
  messages: ok,
  ...rest,
});

const toolOf = (name: string): RunAgentInput["tools"][number] => ({ name, description: name, parameters: {} });
const interrupted = (...ids: readonly string[]): Turn => ({ stream: [STARTED, asks(...ids)] });
const resolved = (...ids: readonly string[]): Pick<RunAgentInput, "resume"> => ({
  resume: ids.map((interruptId) => ({ interruptId, status: "resolved" as const, payload: { yes: true } })),
});

/** Streams of our own for what the specification asks of consumers, by the page that asks it. */
export const STREAMS: Readonly<Record<string, readonly SpecStream[]>> = {
  lifecycle: [
    accepted("a run that says nothing but its end", run(), { messages: [] }),
    rejected("a message before RUN_STARTED", [...fine, STARTED, FINISHED], { messages: [] }),
    rejected("RUN_FINISHED as the only event", [FINISHED], { messages: [] }),
    {
      name: "RUN_ERROR as the only event",
      stream: [failed("no such agent", { code: "NOT_FOUND" })],
      status: "errored",
      code: "NOT_FOUND",
      says: "no such agent",
      messages: [],
    },
    {
      name: "RUN_ERROR in the middle of a message",
      stream: [STARTED, ...fine, opens("n"), adds("n", "half"), failed("out of tokens")],
      status: "errored",
      code: null,
      says: "out of tokens",
      messages: [...ok, answer("n", "half")],
    },
    { name: "an empty stream", stream: [], status: "errored", code: TRUNCATED, messages: [] },
    { name: "RUN_STARTED alone", stream: [STARTED], status: "errored", code: TRUNCATED, messages: [] },
    {
      name: "a stream that ends in the middle of a message",
      stream: [STARTED, ...fine, opens("n"), adds("n", "half")],
      status: "errored",
      code: TRUNCATED,
      messages: [...ok, answer("n", "half")],
      without: ["RUN_FINISHED"],
    },
    {
      name: "a stream that ends after a whole message",
      stream: [STARTED, ...fine],
      status: "errored",
      code: TRUNCATED,
      messages: ok,
      without: ["RUN_FINISHED"],
    },
    {
      name: "a run that its producer cancelled",
      stream: [STARTED, ...fine, { ...FINISHED, outcome: { type: "cancelled" } }],
      status: "stopped",
      messages: ok,
      events: { RUN_FINISHED: { outcome: { type: "cancelled" } } },
      interrupts: [],
    },
    rejected("RUN_STARTED while the run is open", [STARTED, ...fine, OTHER, FINISHED]),
    rejected("a message after RUN_FINISHED", [...run(...fine), ...says("late", "too late")]),
    rejected("a step after RUN_FINISHED", [...run(...fine), { type: "STEP_STARTED", stepName: "late" }]),
    {
      name: "RUN_ERROR after RUN_FINISHED",
      stream: [...run(...fine), failed("could not flush", { code: "FLUSH" })],
      status: "errored",
      code: "FLUSH",
      says: "could not flush",
      messages: ok,
      without: ["RUN_FINISHED"],
    },
    {
      name: "RUN_ERROR after an interrupt outcome",
      stream: [STARTED, ...fine, asks("i"), failed("lost the question", { code: "LOST" })],
      status: "errored",
      code: "LOST",
      messages: ok,
      interrupts: [],
    },
    {
      name: "a message after RUN_ERROR",
      stream: [STARTED, ...fine, failed("broke", { code: "BROKE" }), ...says("late", "too late")],
      status: "errored",
      code: "BROKE",
      says: "broke",
      messages: ok,
    },
    accepted(
      "history before the run that was asked for",
      [
        { type: "RUN_STARTED", threadId: THREAD, runId: "old" },
        {
          type: "MESSAGES_SNAPSHOT",
          messages: [{ id: "q", role: "user", content: "before" }, answer("a", "long ago")],
        },
        { type: "RUN_FINISHED", threadId: THREAD, runId: "old" },
        ...run(...fine),
      ],
      { messages: [{ id: "q" }, answer("a", "long ago"), ...ok] },
    ),
    accepted(
      "a new run after one that failed, on the same stream",
      [{ type: "RUN_STARTED", threadId: THREAD, runId: "old" }, failed("the old one failed"), ...run(...fine)],
      {},
    ),
    accepted("a run under another thread's id, and one of its own", [
      { type: "RUN_STARTED", threadId: "elsewhere", runId: RUN },
      ...fine,
      { type: "RUN_FINISHED", threadId: "another", runId: RUN },
    ]),
    rejected("a step that was never started", run(...fine, { type: "STEP_FINISHED", stepName: "s" })),
    rejected(
      "a step that is started twice",
      run(...fine, { type: "STEP_STARTED", stepName: "s" }, says("n", "x")[0]!, ends("n"), {
        type: "STEP_STARTED",
        stepName: "s",
      }),
      { messages: undefined },
    ),
    accepted(
      "usage and a result at the end",
      [
        STARTED,
        ...fine,
        { ...FINISHED, result: { n: 1 }, usage: [{ provider: "p", model: "m", inputTokens: 3, outputTokens: 4 }] },
      ],
      {
        events: {
          RUN_FINISHED: { result: { n: 1 }, usage: [{ provider: "p", model: "m", inputTokens: 3, outputTokens: 4 }] },
        },
      },
    ),
  ],

  processing: [
    accepted("an event of a type that nobody knows", run({ type: "FUTURE_EVENT", value: 1 }, ...fine), {
      without: ["FUTURE_EVENT"],
    }),
    accepted("a field that nobody knows", run(opens("m", { future: 1 }), adds("m", "fine"), ends("m")), {
      absent: { TEXT_MESSAGE_START: ["future"] },
    }),
    accepted("an outcome that nobody knows", [STARTED, ...fine, { ...FINISHED, outcome: { type: "paused" } }], {
      absent: { RUN_FINISHED: ["outcome"] },
    }),
    accepted(
      "a content part that nobody knows",
      run({
        type: "MESSAGES_SNAPSHOT",
        messages: [
          {
            id: "q2",
            role: "user",
            content: [
              { type: "text", text: "look" },
              { type: "hologram", value: 1 },
            ],
          },
          answer("m", "fine"),
        ],
      }),
      { messages: [{ id: "q2", content: [{ type: "text", text: "look" }] }, ...ok] },
    ),
    rejected("an id that is a number", [
      STARTED,
      ...fine,
      { type: "TEXT_MESSAGE_START", messageId: 7, role: "assistant" },
    ]),
    rejected(
      "a delta that is no text",
      [STARTED, ...fine, opens("n"), { type: "TEXT_MESSAGE_CONTENT", messageId: "n", delta: { a: 1 } }],
      {
        messages: undefined,
      },
    ),
    rejected("an outcome that is a list", [STARTED, ...fine, { ...FINISHED, outcome: [] }]),
    rejected("metadata that is text", [STARTED, ...fine, opens("n", { metadata: "text" })]),
    // The reader of HttpAgent takes it for no event at all.
    rejected("an event without a type", [STARTED, ...fine, { messageId: "n" }], { code: "AGENT_FAILED" }),
    accepted(
      "a patch operation with members of its own",
      run(...fine, state({ a: 1 }), patch({ op: "remove", path: "/a", value: 9 })),
      {
        state: {},
      },
    ),
    rejected("a chunk that is malformed", run(...fine, { type: "TEXT_MESSAGE_CHUNK", messageId: 3, delta: "x" })),
    accepted(
      "timestamps that run backwards do not order events",
      run(
        opens("m", { timestamp: 9 }),
        adds("m", "fi", { timestamp: 5 }),
        adds("m", "ne", { timestamp: 1 }),
        ends("m"),
      ),
    ),
    accepted(
      "a raw event carried beside",
      run(opens("m", { rawEvent: { type: "RUN_ERROR" } }), adds("m", "fine"), ends("m")),
    ),
  ],

  messages: [
    accepted(
      "a message in pieces that cut a character",
      run(opens("m"), adds("m", "\ud83d"), adds("m", "\ude00"), ends("m")),
      {
        messages: [answer("m", "😀")],
      },
    ),
    rejected("content of a message that was never opened", run(...fine, adds("n", "x"))),
    rejected("the end of a message that was never opened", run(...fine, ends("n"))),
    rejected("a message that is opened twice", run(...fine, opens("n"), opens("n")), { messages: undefined }),
    accepted("a closed message that is opened again", run(...fine, opens("m"), adds("m", " again"), ends("m")), {
      messages: [answer("m", "fine again")],
    }),
    accepted(
      "messages, calls and steps that interleave",
      run(
        { type: "STEP_STARTED", stepName: "one" },
        opens("m"),
        { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "look" },
        { type: "STEP_STARTED", stepName: "two" },
        adds("m", "fi"),
        { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" },
        { type: "STEP_FINISHED", stepName: "one" },
        adds("m", "ne"),
        { type: "TOOL_CALL_END", toolCallId: "c" },
        ends("m"),
        { type: "TOOL_CALL_RESULT", messageId: "r", toolCallId: "c", content: "seen" },
        { type: "STEP_FINISHED", stepName: "two" },
      ),
      { messages: undefined },
    ),
    accepted(
      "chunks are expanded",
      run({ type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "fi" }, { type: "TEXT_MESSAGE_CHUNK", delta: "ne" }),
      { without: ["TEXT_MESSAGE_CHUNK"] },
    ),
    rejected("a first chunk without id", run(...fine, { type: "TEXT_MESSAGE_CHUNK", delta: "x" })),
    rejected(
      "a chunk that contradicts its opener",
      run(
        ...fine,
        { type: "TEXT_MESSAGE_CHUNK", messageId: "n", delta: "a" },
        { type: "TEXT_MESSAGE_CHUNK", messageId: "n", role: "user", delta: "b" },
      ),
      { messages: undefined },
    ),
    accepted(
      "a chunk that only brings metadata",
      run(
        { type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "fine" },
        { type: "TEXT_MESSAGE_CHUNK", messageId: "m", metadata: { reason: "stop" } },
      ),
      { messages: [{ ...ok[0], metadata: { reason: "stop" } }] },
    ),
    accepted(
      "RAW does not end a chunk stream",
      run(
        { type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "fi" },
        { type: "RAW", event: { any: 1 } },
        { type: "TEXT_MESSAGE_CHUNK", delta: "ne" },
      ),
    ),
    rejected(
      "CUSTOM ends a chunk stream",
      run(
        ...fine,
        { type: "TEXT_MESSAGE_CHUNK", messageId: "n", delta: "a" },
        { type: "CUSTOM", name: "x", value: 1 },
        { type: "TEXT_MESSAGE_CHUNK", delta: "b" },
      ),
      { messages: undefined },
    ),
    accepted("a message that is open at RUN_FINISHED is closed by the runner", [
      STARTED,
      opens("m"),
      adds("m", "fine"),
      FINISHED,
    ]),
    accepted(
      "metadata merges by key, the last one wins, nothing recurses",
      run(
        opens("m", { metadata: { a: { x: 1 }, b: ["one", "two"] } }),
        adds("m", "fine", { metadata: { a: { y: 2 } } }),
        ends("m", { metadata: { b: ["three"], c: null } }),
      ),
      { messages: [{ ...ok[0], metadata: { a: { y: 2 }, b: ["three"], c: null } }] },
    ),
  ],

  tools: [
    accepted(
      "a call in pieces, and its result",
      run(...calls("c", "look", '{"a":1}'), {
        type: "TOOL_CALL_RESULT",
        messageId: "r",
        toolCallId: "c",
        content: "seen",
      }),
      {
        messages: [
          { id: "c", role: "assistant", toolCalls: [{ id: "c", function: { name: "look", arguments: '{"a":1}' } }] },
          { id: "r", role: "tool", toolCallId: "c", content: "seen" },
        ],
      },
    ),
    accepted("arguments that are no JSON are kept as text", run(...calls("c", "look", '{"a":')), {
      messages: [{ id: "c", toolCalls: [{ function: { arguments: '{"a":' } }] }],
    }),
    accepted(
      "a result of parts",
      run(...calls("c", "look"), {
        type: "TOOL_CALL_RESULT",
        messageId: "r",
        toolCallId: "c",
        content: [
          { type: "text", text: "a page" },
          { type: "image", source: { type: "file", value: "file-1", provider: "p" } },
        ],
      }),
      {
        messages: [
          { id: "c" },
          {
            id: "r",
            content: [
              { type: "text", text: "a page" },
              { type: "image", source: { type: "file", value: "file-1", provider: "p" } },
            ],
          },
        ],
      },
    ),
    accepted(
      "a result for a call that nobody made",
      run(...fine, {
        type: "TOOL_CALL_RESULT",
        messageId: "r",
        toolCallId: "nobody",
        content: "x",
      }),
      { messages: undefined },
    ),
    rejected(
      "arguments of a call that was never opened",
      run(...fine, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" }),
    ),
    rejected(
      "a first tool chunk without a name",
      run(...fine, { type: "TOOL_CALL_CHUNK", toolCallId: "c", delta: "{}" }),
    ),
    rejected(
      "a tool chunk that contradicts its opener",
      run(
        ...fine,
        { type: "TOOL_CALL_CHUNK", toolCallId: "c", toolCallName: "look", delta: "{" },
        { type: "TOOL_CALL_CHUNK", toolCallId: "c", toolCallName: "listen", delta: "}" },
      ),
      { messages: undefined },
    ),
    accepted("a front-end tool that is called is not answered", run(...calls("c", "ask")), {
      input: { tools: [toolOf("ask")] },
      messages: undefined,
      pending: ["c"],
      without: ["TOOL_CALL_RESULT"],
    }),
    accepted(
      "a front-end tool whose call is open at RUN_FINISHED is closed, not answered",
      [STARTED, ...calls("c", "ask").slice(0, 2), FINISHED],
      {
        input: { tools: [toolOf("ask")] },
        messages: [{ id: "c", toolCalls: [{ id: "c" }] }],
        pending: ["c"],
        without: ["TOOL_CALL_RESULT"],
      },
    ),
    accepted(
      "pendingToolCallIds is handed on",
      [STARTED, ...calls("c", "ask"), { ...FINISHED, outcome: { type: "success", pendingToolCallIds: ["c"] } }],
      {
        input: { tools: [toolOf("ask")] },
        messages: undefined,
        pending: ["c"],
        without: ["TOOL_CALL_RESULT"],
        events: { RUN_FINISHED: { outcome: { type: "success", pendingToolCallIds: ["c"] } } },
      },
    ),
    {
      name: "no result is made up for a stream that ends in a call",
      stream: [STARTED, ...fine, ...calls("c", "own").slice(0, 2)],
      status: "errored",
      code: TRUNCATED,
      without: ["TOOL_CALL_RESULT"],
    },
    accepted("metadata of a call lands on the call", run(...calls("c", "look", "{}", { metadata: { cost: 1 } })), {
      messages: [{ id: "c", toolCalls: [{ id: "c", metadata: { cost: 1 } }] }],
    }),
  ],

  state: [
    accepted("a snapshot replaces, it does not merge", run(...fine, state({ a: 1, b: 2 }), state(["only"])), {
      state: ["only"],
    }),
    accepted("a snapshot of null", run(...fine, state({ a: 1 }), state(null)), { state: null }),
    accepted("a snapshot of 0", run(...fine, state({ a: 1 }), state(0)), { state: 0 }),
    accepted(
      "a delta builds on the state that the run was asked with",
      run(...fine, patch({ op: "replace", path: "/n", value: 2 })),
      {
        input: { state: { n: 1, keep: true } },
        state: { n: 2, keep: true },
      },
    ),
    accepted(
      "a delta builds on the state that the run before left",
      run(...fine, patch({ op: "replace", path: "/n", value: 2 })),
      {
        before: [{ stream: run(state({ n: 1, keep: true })) }],
        state: { n: 2, keep: true },
      },
    ),
    accepted(
      "a delta that fails in its middle changes nothing",
      run(
        ...fine,
        state({ a: 1 }),
        patch({ op: "add", path: "/b", value: 2 }, { op: "remove", path: "/nowhere" }),
        patch({ op: "add", path: "/c", value: 3 }),
      ),
      { state: { a: 1, c: 3 } },
    ),
    accepted(
      "a test that fails keeps the value",
      run(...fine, state({ a: 1 }), patch({ op: "test", path: "/a", value: 2 }, { op: "remove", path: "/a" })),
      {
        state: { a: 1 },
      },
    ),
    accepted(
      "a snapshot after a delta that failed is adopted",
      run(...fine, patch({ op: "remove", path: "/x" }), state({ whole: true })),
      {
        state: { whole: true },
      },
    ),
    accepted(
      "an operation that nobody knows is dropped from its patch",
      run(...fine, state({ a: 1 }), patch({ op: "merge", path: "/a", value: 5 }, { op: "add", path: "/b", value: 2 })),
      {
        state: { a: 1, b: 2 },
      },
    ),
    rejected(
      "a patch that is no list",
      run(...fine, { type: "STATE_DELTA", delta: { op: "add", path: "/a", value: 1 } }),
    ),
    rejected("an operation without a path", run(...fine, patch({ op: "add", value: 1 }))),
    accepted(
      "a snapshot of messages replaces in place, drops what it lacks and appends what is new",
      run(...says("a", "one"), ...says("b", "two"), {
        type: "MESSAGES_SNAPSHOT",
        messages: [answer("m", "fine"), answer("a", "ONE")],
      }),
      { messages: [answer("a", "ONE"), answer("m", "fine")] },
    ),
    accepted(
      "activities and reasoning survive a snapshot of messages without any",
      run(
        activity("act", { n: 1 }),
        { type: "REASONING_MESSAGE_START", messageId: "think", role: "reasoning" },
        { type: "REASONING_MESSAGE_CONTENT", messageId: "think", delta: "hm" },
        { type: "REASONING_MESSAGE_END", messageId: "think" },
        { type: "MESSAGES_SNAPSHOT", messages: [answer("m", "fine")] },
      ),
      { messages: [{ id: "act", role: "activity" }, { id: "think", role: "reasoning" }, ...ok] },
    ),
  ],

  activity: [
    accepted(
      "a delta changes the snapshot",
      run(...fine, activity("act", { n: 1 }), {
        type: "ACTIVITY_DELTA",
        messageId: "act",
        activityType: "found",
        patch: [{ op: "replace", path: "/n", value: 2 }],
      }),
      { messages: [...ok, { id: "act", role: "activity", activityType: "found", content: { n: 2 } }] },
    ),
    accepted(
      "replace: false leaves what is there",
      run(...fine, activity("act", { n: 1 }), activity("act", { n: 9 }, { replace: false, activityType: "other" })),
      { messages: [...ok, { id: "act", activityType: "search", content: { n: 1 } }] },
    ),
    accepted(
      "a delta for an activity that is not there",
      run(...fine, {
        type: "ACTIVITY_DELTA",
        messageId: "nowhere",
        activityType: "x",
        patch: [{ op: "add", path: "/a", value: 1 }],
      }),
    ),
    accepted(
      "metadata survives a snapshot that replaces",
      run(
        ...fine,
        activity("act", { n: 1 }, { metadata: { a: 1 } }),
        activity("act", { n: 2 }, { metadata: { b: 2 } }),
      ),
      { messages: [...ok, { id: "act", content: { n: 2 }, metadata: { a: 1, b: 2 } }] },
    ),
  ],

  reasoning: [
    accepted(
      "a span and a message in it, with one id",
      run(
        { type: "REASONING_START", messageId: "think" },
        { type: "REASONING_MESSAGE_START", messageId: "think", role: "reasoning" },
        { type: "REASONING_MESSAGE_CONTENT", messageId: "think", delta: "hm" },
        { type: "REASONING_MESSAGE_END", messageId: "think" },
        { type: "REASONING_ENCRYPTED_VALUE", subtype: "message", entityId: "think", encryptedValue: "s3al" },
        { type: "REASONING_END", messageId: "think" },
        ...fine,
      ),
      { messages: [{ id: "think", role: "reasoning", content: "hm", encryptedValue: "s3al" }, ...ok] },
    ),
    rejected(
      "content of reasoning that was never opened",
      run(...fine, {
        type: "REASONING_MESSAGE_CONTENT",
        messageId: "think",
        delta: "hm",
      }),
    ),
    rejected(
      "content that names a span",
      run(
        ...fine,
        { type: "REASONING_START", messageId: "think" },
        {
          type: "REASONING_MESSAGE_CONTENT",
          messageId: "think",
          delta: "hm",
        },
      ),
    ),
    rejected(
      "a span that is opened twice",
      run(...fine, { type: "REASONING_START", messageId: "s" }, opens("n"), {
        type: "REASONING_START",
        messageId: "s",
      }),
      { messages: undefined },
    ),
    rejected("the end of a span that was never opened", run(...fine, { type: "REASONING_END", messageId: "s" })),
    rejected(
      "a reasoning message of another role",
      run(...fine, {
        type: "REASONING_MESSAGE_START",
        messageId: "think",
        role: "assistant",
      }),
    ),
    accepted(
      "an encrypted value for nobody",
      run(...fine, {
        type: "REASONING_ENCRYPTED_VALUE",
        subtype: "message",
        entityId: "nobody",
        encryptedValue: "s3al",
      }),
    ),
    // The check is the client's, which rejects it; see the table.
    rejected(
      "an encrypted value of a kind that nobody knows",
      run(...fine, {
        type: "REASONING_ENCRYPTED_VALUE",
        subtype: "future",
        entityId: "m",
        encryptedValue: "s3al",
      }),
    ),
    accepted(
      "an encrypted value of a call",
      run(...fine, ...calls("c", "look"), {
        type: "REASONING_ENCRYPTED_VALUE",
        subtype: "tool-call",
        entityId: "c",
        encryptedValue: "s3al",
      }),
      { messages: [...ok, { id: "c", toolCalls: [{ id: "c", encryptedValue: "s3al" }] }] },
    ),
  ],

  subagents: [
    accepted("attribution without an announcement", run(...says("m", "fine", { subagentRunId: "s" })), {
      messages: [{ ...ok[0], subagentRunId: "s" }],
    }),
    accepted("a continuation without a tag", run(opens("m", { subagentRunId: "s" }), adds("m", "fine"), ends("m"))),
    rejected(
      "a continuation with another tag",
      run(...fine, opens("n", { subagentRunId: "s" }), adds("n", "x", { subagentRunId: "other" })),
      { messages: undefined },
    ),
    rejected(
      "the end of a subagent that was never announced",
      run(...fine, { type: "SUBAGENT_FINISHED", subagentRunId: "s" }),
    ),
    rejected("a subagent without a name", run(...fine, { type: "SUBAGENT_STARTED", subagentRunId: "s" })),
    rejected(
      "a subagent that is announced twice",
      run(
        ...fine,
        { type: "SUBAGENT_STARTED", subagentRunId: "s", name: "poet" },
        { type: "SUBAGENT_STARTED", subagentRunId: "s", name: "poet" },
      ),
    ),
    rejected(
      "a parent that was never announced",
      run(...fine, {
        type: "SUBAGENT_STARTED",
        subagentRunId: "s",
        name: "poet",
        parentSubagentRunId: "nobody",
      }),
    ),
    accepted(
      "two subagents at once; the end of one closes nothing of the other",
      run(
        { type: "SUBAGENT_STARTED", subagentRunId: "s1", name: "one" },
        { type: "SUBAGENT_STARTED", subagentRunId: "s2", name: "two" },
        opens("a", { subagentRunId: "s1" }),
        opens("b", { subagentRunId: "s2" }),
        adds("b", "b"),
        adds("a", "a"),
        ends("a"),
        { type: "SUBAGENT_FINISHED", subagentRunId: "s1" },
        adds("b", "bb"),
        ends("b"),
        { type: "SUBAGENT_FINISHED", subagentRunId: "s2" },
      ),
      { messages: [answer("a", "a"), answer("b", "bbb")] },
    ),
    accepted(
      "the state of a subagent is the run's",
      run(
        ...fine,
        { ...state({ a: 1 }), subagentRunId: "s" },
        { ...patch({ op: "add", path: "/b", value: 2 }), subagentRunId: "s" },
      ),
      {
        state: { a: 1, b: 2 },
      },
    ),
    accepted(
      "a subagent that failed ends no run",
      run(
        { type: "SUBAGENT_STARTED", subagentRunId: "s", name: "poet" },
        { type: "SUBAGENT_ERROR", subagentRunId: "s", message: "no rhyme" },
        ...fine,
      ),
    ),
    {
      name: "RUN_ERROR leaves no subagent open",
      stream: [
        STARTED,
        ...fine,
        { type: "SUBAGENT_STARTED", subagentRunId: "s", name: "poet" },
        failed("broke", { code: "BROKE" }),
      ],
      status: "errored",
      code: "BROKE",
      messages: ok,
    },
    accepted("a subagent that is open at RUN_FINISHED is closed by the runner", [
      STARTED,
      ...fine,
      { type: "SUBAGENT_STARTED", subagentRunId: "s", name: "poet" },
      FINISHED,
    ]),
  ],

  passthrough: [
    accepted(
      "CUSTOM and RAW pass as they are",
      run(
        ...fine,
        { type: "CUSTOM", name: "com.example.cart", value: { items: [1, null] } },
        { type: "RAW", event: { type: "RUN_FINISHED" }, source: "provider" },
      ),
      {
        events: {
          CUSTOM: { name: "com.example.cart", value: { items: [1, null] } },
          RAW: { event: { type: "RUN_FINISHED" }, source: "provider" },
        },
      },
    ),
    accepted("CUSTOM with a value of null", run(...fine, { type: "CUSTOM", name: "x", value: null }), {
      events: { CUSTOM: { value: null } },
    }),
  ],

  interrupts: [
    {
      name: "an interrupt is open after its run",
      stream: [STARTED, ...fine, asks("i1", "i2")],
      status: "finished",
      messages: ok,
      interrupts: ["i1", "i2"],
    },
    accepted("answers to all of them close them", run(...fine), {
      before: [interrupted("i1", "i2")],
      input: resolved("i1", "i2"),
      interrupts: [],
    }),
    accepted("an interrupt may be abandoned", run(...fine), {
      before: [interrupted("i1")],
      input: { resume: [{ interruptId: "i1", status: "cancelled" }] },
      interrupts: [],
    }),
    {
      name: "a run that fails leaves the interrupts of the run before as they are",
      before: [interrupted("i1")],
      input: resolved("i1"),
      stream: [STARTED, ...fine, failed("broke", { code: "BROKE" })],
      status: "errored",
      code: "BROKE",
      messages: ok,
      interrupts: ["i1"],
    },
    rejected("an interrupt outcome without interrupts", [STARTED, ...fine, asks()], { interrupts: [] }),
  ],

  versions: [
    accepted("a producer of the same version", [{ ...STARTED, protocolVersion: "1.0" }, ...fine, FINISHED]),
    accepted("a producer of a newer minor version", [{ ...STARTED, protocolVersion: "1.27" }, ...fine, FINISHED], {
      // What is handed on was checked and stripped as of the version that is spoken here.
      events: { RUN_STARTED: { protocolVersion: "1.0" } },
    }),
    accepted("a version that means nothing", [{ ...STARTED, protocolVersion: "soon" }, ...fine, FINISHED]),
    accepted("a producer of before there were versions", run(...fine)),
  ],
};

/** All ids of an event's JSON replaced by those of the run. */
export function onWire(event: Raw, { threadId, runId }: Pick<RunAgentInput, "threadId" | "runId">): string {
  return JSON.stringify(event)
    .replaceAll(JSON.stringify(THREAD), JSON.stringify(threadId))
    .replaceAll(JSON.stringify(RUN), JSON.stringify(runId));
}
