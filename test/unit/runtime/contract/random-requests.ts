import fc from "fast-check";

/** A request as it is drawn: plain data, so that one that fails can be read. */
export interface DrawnRequest {
  readonly method: string;
  /** Below the base path; not encoded any more. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: DrawnBody | undefined;
  /** After so many events, pieces of the body, or turns of the event loop the sender is gone; undefined: it stays. */
  readonly leaves: { readonly at: "start" | "turns" | "events"; readonly after: number } | undefined;
  /** The runtime must say no. */
  readonly isWrong: boolean;
}

export interface DrawnBody {
  readonly text: string;
  /** Bytes that are no UTF-8 stand behind the text. */
  readonly broken: boolean;
  /** `errors`: it fails after its first half. */
  readonly sent: "whole" | "pieces" | "errors";
}

const POISON = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "then", "toJSON"] as const;

/** Ids that look like something else; half of a surrogate pair is one that JSON can carry. */
const id = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("t1", "t2", "t3") },
  fc.constantFrom(...POISON, "clear", "a/b", "..", ".", "%2e", "👋", "\ud800", "\0", " ", "x".repeat(3_000)),
  fc.string({ maxLength: 8 }),
);

/** Agents of the contract that end by themselves, one that waits until it is stopped, and some that are not there. */
const agentId = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom("echo", "rich", "holder", "thrower", "early", "inRun", "asker", "suggester"),
  },
  fc.constantFrom("nobody", "a/b", "clear", "👋 agent", ...POISON),
);

const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());

const path = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(agentId, fc.constantFrom("run", "run", "connect", "suggest"))
      .map(([agent, work]) => `/agent/${encoded(agent)}/${work}`),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(agentId, id).map(([agent, thread]) => `/agent/${encoded(agent)}/stop/${encoded(thread)}`),
  },
  { weight: 2, arbitrary: fc.constantFrom("/info", "/health", "/threads", "/threads/clear", "/transcribe", "") },
  {
    weight: 2,
    arbitrary: fc
      .tuple(id, fc.constantFrom("", "/archive", "/messages", "/events", "/state"))
      .map(([thread, what]) => `/threads/${encoded(thread)}${what}`),
  },
);

const TRICKS = [
  "//",
  "/..",
  "/%2e%2e",
  "/.",
  "%00",
  "%ff",
  "%",
  "\\",
  ";x=1",
  "?",
  "?limit=-1",
  "?cursor=x",
  "#",
  "/%2f",
  "%C0%AE",
  "a".repeat(9_000),
];

const trickyPath = fc
  .tuple(path, fc.nat(40), fc.constantFrom(...TRICKS))
  .map(([at, n, trick]) => `${at.slice(0, n % (at.length + 1))}${trick}${at.slice(n % (at.length + 1))}`);

const json: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(null, "", 0, -1, 1e308, [], {}, "x".repeat(500), [null], [[]], { type: "x" }),
);

const message = fc.record(
  {
    id,
    role: fc.constantFrom("user", "assistant", "system", "tool", "developer", "reasoning", "activity", "nobody"),
    content: fc.oneof(fc.string(), json),
    toolCallId: fc.string(),
  },
  { requiredKeys: ["id", "role"] },
);

const goodInput = fc.record({
  threadId: id,
  runId: fc.oneof(fc.uuid(), fc.constantFrom("r1", "r2", "__proto__")),
  messages: fc.array(fc.record({ id: fc.uuid(), role: fc.constant("user"), content: fc.string() }), { maxLength: 3 }),
  state: fc.oneof(fc.constant({}), json),
  tools: fc.constant([]),
  context: fc.constant([]),
  forwardedProps: fc.oneof(
    fc.constantFrom({}, { open: ["text", "call"] }, { toolChoice: { function: { name: "copilotkitSuggest" } } }),
    fc.constantFrom({ toolChoice: null }, { toolChoice: { function: 1 } }),
  ),
});

const FIELDS = [
  "threadId",
  "runId",
  "messages",
  "state",
  "tools",
  "context",
  "forwardedProps",
  "resume",
  "parentRunId",
];

/** An input with one of its fields another one, or gone. */
const oddInput = fc
  .tuple(
    goodInput,
    fc.constantFrom(...FIELDS, "lastSeenEventId", "protocolVersion", ...POISON.slice(1)),
    fc.oneof(json, fc.array(message, { maxLength: 2 }), fc.constant(undefined)),
  )
  .map(([input, field, value]) => JSON.stringify({ ...input, [field]: value }));

/** JSON that has a field `__proto__` somewhere: JSON.stringify would make none. */
const poisoned = fc
  .tuple(goodInput, fc.constantFrom("state", "forwardedProps", "top", "message"))
  .map(([input, where]) => {
    const text = JSON.stringify(input);
    const poison = '"__proto__":{"polluted":true}';
    if (where === "top") return `{${poison},${text.slice(1)}`;
    if (where === "message") return text.replace(/"messages":\[/, `"messages":[{${poison}},`).replace(",]", "]");
    return `${text.slice(0, -1)},"${where}":{"a":[{${poison}}]}}`;
  });

const WRONG_TEXTS = ["{", "nonsense", "[", '{"threadId":', "null", "[]", '"x"', "1", "", " ", "{}", "\ufeff{"];

/** For routes that read a run's input, in a body of its own: must be refused. */
const wrongText = fc.oneof(
  fc.constantFrom(...WRONG_TEXTS),
  poisoned,
  fc
    .tuple(goodInput, fc.integer({ min: 201, max: 3_000 }), fc.constantFrom(["[", "]"], ['{"a":', "}"]))
    .map(([{ state: _state, ...input }, depth, [open, close]]) => {
      const deep = `${open!.repeat(depth)}1${close!.repeat(depth)}`;
      return `${JSON.stringify(input).slice(0, -1)},"state":${deep}}`;
    }),
  goodInput.map((input) => JSON.stringify({ ...input, state: "x".repeat(120_000) })),
);

const otherText = fc.oneof(
  fc.constantFrom(
    "{}",
    '{"runId":"r1"}',
    '{"name":"x"}',
    '{"archived":true}',
    '{"audio":"eA==","mimeType":"audio/webm"}',
  ),
  json.map((value) => JSON.stringify(value)),
  fc.string(),
);

const envelope = fc
  .record(
    {
      method: fc.oneof(
        fc.constantFrom(
          "info",
          "agent/run",
          "agent/connect",
          "agent/suggest",
          "agent/stop",
          "transcribe",
          "resource/request",
        ),
        fc.constantFrom(...POISON),
        json,
      ),
      params: fc.oneof(
        fc.record({ agentId, threadId: id }),
        fc.record({
          path: fc.oneof(path, trickyPath),
          httpMethod: fc.constantFrom("GET", "POST", "DELETE", "PATCH", "HEAD", "TRACE", "x y"),
        }),
        json,
      ),
      body: fc.oneof(goodInput, json),
    },
    { requiredKeys: [] },
  )
  .map((value) => JSON.stringify(value));

/** All that an envelope can say, said right. */
const goodEnvelope = fc
  .oneof(
    fc.constant({ method: "info" }),
    fc.tuple(agentId, fc.constantFrom("run", "run", "connect", "suggest"), goodInput).map(([agent, work, body]) => ({
      method: `agent/${work}`,
      params: { agentId: agent },
      body,
    })),
    fc
      .tuple(agentId, id, fc.constantFrom(undefined, {}, { runId: "r1" }))
      .map(([agent, threadId, body]) => ({ method: "agent/stop", params: { agentId: agent, threadId }, body })),
    fc.tuple(id, fc.constantFrom("/messages", "/events", "/state")).map(([one, what]) => ({
      method: "resource/request",
      params: { path: `/threads/${encoded(one)}${what}`, httpMethod: "GET" },
    })),
    fc.tuple(id, fc.constantFrom("DELETE", "PATCH")).map(([one, httpMethod]) => ({
      method: "resource/request",
      params: { path: `/threads/${encoded(one)}`, httpMethod },
      body: { name: "x" },
    })),
  )
  .map((value) => JSON.stringify(value));

const bodyOf = (text: fc.Arbitrary<string>): fc.Arbitrary<DrawnBody> =>
  fc.record({
    text,
    broken: fc.nat(20).map((n) => n === 0),
    sent: fc.constantFrom("whole", "whole", "whole", "pieces", "errors"),
  });

const TYPES = [
  "application/json",
  "application/json",
  "application/json; charset=utf-8",
  "text/plain",
  "multipart/form-data",
  "multipart/form-data; boundary=x",
  "application/vnd.x+json",
  "",
  "x",
];

const headers = fc
  .record(
    {
      "Content-Encoding": fc.constantFrom("gzip", "identity", "br, gzip"),
      "Content-Length": fc.constantFrom("0", "999999999", "x", "-1"),
      "Last-Event-ID": fc.oneof(
        fc.constantFrom("0.0.1", "0.-1.1", "9.9.9", "__proto__", "x"),
        fc.stringMatching(/^[ -~]{0,20}$/),
      ),
      Accept: fc.constantFrom("*/*", "text/event-stream", "application/vnd.ag-ui.event+proto", "x;q=y,,"),
      Origin: fc.constantFrom("null", "https://other.example", "x"),
      "Sec-Fetch-Site": fc.constantFrom("cross-site", "same-origin", "none", "x"),
      Authorization: fc.constant("Bearer secret"),
      "Transfer-Encoding": fc.constant("chunked"),
      "X-Forwarded-Host": fc.constant("evil.example"),
    },
    { requiredKeys: [] },
  )
  .chain((some) => fc.constantFrom(...TYPES).map((type) => (type === "" ? some : { ...some, "Content-Type": type })));

const leaves = fc.option(fc.record({ at: fc.constantFrom("start", "turns", "events"), after: fc.nat(12) }), {
  nil: undefined,
  freq: 3,
});

const METHODS = ["POST", "POST", "POST", "POST", "GET", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"];

/** Any request at all: of most of them something is wrong. */
const anyRequest: fc.Arbitrary<DrawnRequest> = fc
  .record({
    method: fc.constantFrom(...METHODS),
    path: fc.oneof({ weight: 3, arbitrary: path }, trickyPath),
    headers,
    body: fc.option(
      bodyOf(
        fc.oneof(
          goodInput.map((input) => JSON.stringify(input)),
          oddInput,
          wrongText,
          otherText,
          envelope,
        ),
      ),
    ),
    leaves,
    isWrong: fc.constant(false),
  })
  .map(({ body, ...rest }) => ({ ...rest, body: body ?? undefined }));

/** Right in all but its body. */
const wrongRequest: fc.Arbitrary<DrawnRequest> = fc.record({
  method: fc.constant("POST"),
  path: fc.constantFrom("run", "connect", "suggest").map((work) => `/agent/echo/${work}`),
  headers: fc.constant({ "Content-Type": "application/json" }),
  body: bodyOf(wrongText),
  leaves: fc.constant(undefined),
  isWrong: fc.constant(true),
});

/** Right in all. */
const goodRequest: fc.Arbitrary<DrawnRequest> = fc.record({
  method: fc.constant("POST"),
  path,
  headers: fc.constant({ "Content-Type": "application/json" }),
  body: goodInput.map((input) => ({ text: JSON.stringify(input), broken: false, sent: "whole" as const })),
  leaves,
  isWrong: fc.constant(false),
});

export const drawnRequest: fc.Arbitrary<DrawnRequest> = fc.oneof(
  { weight: 4, arbitrary: anyRequest },
  { weight: 2, arbitrary: wrongRequest },
  { weight: 2, arbitrary: goodRequest },
);

/** For one endpoint: envelopes, some of them right. */
export const drawnEnvelope: fc.Arbitrary<DrawnRequest> = fc.oneof(
  { weight: 1, arbitrary: anyRequest },
  {
    weight: 3,
    arbitrary: fc.record({
      method: fc.constant("POST"),
      path: fc.constant(""),
      headers: fc.constant({ "Content-Type": "application/json" }),
      body: bodyOf(fc.oneof(envelope, { weight: 2, arbitrary: goodEnvelope })),
      leaves,
      isWrong: fc.constant(false),
    }),
  },
);
