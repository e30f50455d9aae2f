import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  parseRunInput,
  parseStopBody,
  parseThreadUpdate,
  readBytes,
  readJson,
  readText,
} from "../../../../src/runtime/http/body.js";
import { times } from "../../property.js";
import { expectRefusal, JSON_TYPE, post, refusal } from "./kit.js";

const MAX = 1000;
const bytes = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(length).fill(32);
const input = { threadId: "t", runId: "r", messages: [], state: {}, tools: [], context: [], forwardedProps: {} };
const tooLarge = { status: 413, body: { error: "Payload too large" } };
const unsupported = { status: 415, body: { error: "Unsupported media type" } };
const invalid = (details: string): object => ({ status: 400, body: { error: "Invalid request body", details } });

/** A body of pieces, and how many of them were taken. */
function pieces(...sizes: readonly number[]): {
  readonly body: ReadableStream<Uint8Array>;
  readonly seen: { taken: number; cancelled: boolean };
} {
  const seen = { taken: 0, cancelled: false };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const size = sizes[seen.taken];
        if (size === undefined) return controller.close();
        seen.taken++;
        controller.enqueue(bytes(size));
      },
      cancel() {
        seen.cancelled = true;
        return new Promise(() => undefined); // the sender may never be done
      },
    },
    { highWaterMark: 0 },
  );
  return { body, seen };
}

describe("reading", () => {
  test("a body of exactly as many bytes as may be is read", async () => {
    expect(await readBytes(post(bytes(MAX)), MAX)).toEqual(bytes(MAX));
    expect(await readBytes(post(pieces(400, 600).body), MAX)).toEqual(bytes(MAX));
  });

  test("no body is an empty body", async () => {
    expect(await readText(new Request("http://localhost/", { method: "POST" }), 0)).toBe("");
  });

  test("a body that says it is too long is refused before anything of it is read", async () => {
    const { body, seen } = pieces(10);
    expect(await refusal(readBytes(post(body, { ...JSON_TYPE, "Content-Length": `${MAX + 1}` }), MAX))).toEqual(
      tooLarge,
    );
    expect(seen).toEqual({ taken: 0, cancelled: true });
  });

  test("a body that is longer than it says is read no further than it may be", async () => {
    const { body, seen } = pieces(600, 600, 600, 600);
    expect(await refusal(readBytes(post(body, { "Content-Length": "5" }), MAX))).toEqual(tooLarge);
    expect(seen).toEqual({ taken: 2, cancelled: true });
  });

  test.each(["gzip", "br", "deflate", "identity, gzip"])("a body in %s is refused", async (encoding) => {
    const request = post(input, { ...JSON_TYPE, "Content-Encoding": encoding });
    expect(await refusal(parseRunInput(request, MAX))).toEqual(unsupported);
  });

  test("identity is no compression", async () => {
    expect(await readJson(post([1], { ...JSON_TYPE, "Content-Encoding": "Identity" }), MAX)).toEqual([1]);
  });

  test("a body that breaks off is refused", async () => {
    const body = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error("gone")) });
    expect(await refusal(readText(post(body), MAX))).toEqual(invalid("The body ended early"));
  });

  test.each([[[0xff]], [[0x22, 0xc3, 0x22]], [[0xed, 0xa0, 0x80]]])(
    "bytes that are not UTF-8 are refused: %j",
    async (raw) => {
      expect(await refusal(readText(post(Uint8Array.from(raw)), MAX))).toEqual(invalid("The body is not UTF-8"));
    },
  );

  test("a byte order mark is no part of the text", async () => {
    expect(await readJson(post("\ufeff{}"), MAX)).toEqual({});
  });
});

describe("the type of a body", () => {
  test.each([
    "application/json",
    "application/json; charset=utf-8",
    "APPLICATION/JSON",
    " application/json ;x=y",
    "application/vnd.api+json",
    "text/json",
  ])("%s is JSON", async (type) => {
    expect(await readJson(post({}, { "Content-Type": type }), MAX)).toEqual({});
  });

  test.each([
    "text/plain",
    "text/plain;application/json",
    "text/plain; charset=application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=application/json",
    "application/octet-stream",
    "application/json, text/plain",
    "application/jsonp",
    "json",
    "",
  ])("%j is not", async (type) => {
    for (const parse of [readJson, parseRunInput, parseStopBody, parseThreadUpdate]) {
      expect(await refusal(parse(post(input, { "Content-Type": type }), MAX))).toEqual(unsupported);
    }
  });

  /** Bytes: a text would be given a type. */
  const untyped = (headers: HeadersInit): Request => post(new TextEncoder().encode("{}"), headers);

  test.each<[string, HeadersInit]>([
    ["no page", {}],
    ["a page of this origin", { "Sec-Fetch-Site": "same-origin", Origin: "http://seen-by-the-browser.example" }],
    ["the person at the browser", { "Sec-Fetch-Site": "none" }],
    ["a page of this origin, over plain http", { Origin: "http://localhost" }],
  ])("a body without a type is taken from %s", async (_, headers) => {
    expect(await readJson(untyped(headers), MAX)).toEqual({});
    expect(await parseStopBody(untyped(headers), MAX)).toEqual({});
  });

  test.each<[string, HeadersInit]>([
    ["a page of another origin", { "Sec-Fetch-Site": "cross-site", Origin: "http://localhost" }],
    ["a page of the same site", { "Sec-Fetch-Site": "same-site" }],
    ["a page of another origin, over plain http", { Origin: "http://evil.example" }],
    ["a page that hides its origin", { Origin: "null" }],
  ])("a body without a type is refused from %s", async (_, headers) => {
    expect(await refusal(readJson(untyped(headers), MAX))).toEqual(unsupported);
    expect(await refusal(parseStopBody(untyped(headers), MAX))).toEqual(unsupported);
  });
});

describe("JSON", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

  test.each(["", " ", "{", "{}x", "nul", "\u0000", "{'a':1}", "[1,]"])("%j is none", async (text) => {
    expect(await refusal(readJson(post(text), MAX))).toEqual(invalid("The body is not JSON"));
  });

  test("200 levels are taken, more are refused", async () => {
    expect(await readJson(post(nested(200)), MAX)).toHaveLength(1);
    const deeper = invalid("The body is nested deeper than 200 levels");
    expect(await refusal(readJson(post(nested(201)), MAX))).toEqual(deeper);
    expect(await refusal(readJson(post(`{"a":${nested(200)}}`), MAX))).toEqual(deeper);
  });

  test("a hundred thousand levels are refused like 201", async () => {
    const request = post(nested(100_000));
    await expectRefusal(await readJson(request, 1_000_000).catch((error: unknown) => error));
  });

  test.each(['{"__proto__":1}', '{"a":[{"__proto__":{"polluted":true}}]}', '{"\\u005f_proto__":null}'])(
    "a field __proto__ is refused: %s",
    async (text) => {
      expect(await refusal(readJson(post(text), MAX))).toEqual(invalid('The body has a field "__proto__"'));
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    },
  );

  test("other names of prototypes are fields", async () => {
    const body = { constructor: { prototype: 1 }, toString: "x", hasOwnProperty: null };
    expect(await readJson(post(body), MAX)).toEqual(body);
  });
});

describe("the input of a run", () => {
  const message = { id: "m", role: "user", content: "hello" };

  test("is taken as AG-UI has it", async () => {
    const full = {
      ...input,
      protocolVersion: "1.0",
      messages: [message],
      tools: [{ name: "n", description: "d", parameters: { type: "object" } }],
      context: [{ description: "d", value: "v" }],
      resume: [{ interruptId: "i", status: "resolved", payload: 1 }],
      state: { deep: [1, null] },
      forwardedProps: { toolChoice: "x" },
    };
    expect(await parseRunInput(post(full), MAX)).toEqual(full);
  });

  test("gets empty lists where it has none, and a state only where it has one", async () => {
    const { state: _state, tools: _tools, context: _context, ...little } = input;
    expect(await parseRunInput(post(little), MAX)).toEqual({ ...little, tools: [], context: [] });
    expect(await parseRunInput(post(input), MAX)).toHaveProperty("state", {});
  });

  test("may say how far its sender has got", async () => {
    const after = { ...input, lastSeenEventId: "3.14.2" };
    expect(await parseRunInput(post(after), MAX)).toEqual(after);
  });

  test.each([null, 7, "", {}])("says nothing of that with %j", async (lastSeenEventId) => {
    expect(await parseRunInput(post({ ...input, lastSeenEventId }), MAX)).toEqual(input);
  });

  test.each<[string, unknown]>([
    ["threadId: is missing", { ...input, threadId: undefined }],
    ["runId: must be of type string", { ...input, runId: 7 }],
    ["threadId: must not be empty", { ...input, threadId: "" }],
    ["runId: must not be empty", { ...input, runId: "" }],
    ["parentRunId: must not be empty", { ...input, parentRunId: "" }],
    ["body: must be of type object", []],
    ["body: must be of type object", "secret"],
    ["body: must be of type object", null],
    ["messages: must be of type array", { ...input, messages: { secret: 1 } }],
    ["messages.0.role: is not valid", { ...input, messages: [{ ...message, role: "secret" }] }],
    [
      "messages.1.id: must be of type string; messages.1.content: is not valid",
      { ...input, messages: [message, { ...message, id: 5, content: 5 }] },
    ],
    ["tools.0.description: is missing", { ...input, tools: [{ name: "secret" }] }],
  ])("is refused: %s", async (details, body) => {
    const answer = await refusal(parseRunInput(post(JSON.stringify(body)), MAX));
    expect(answer).toEqual(invalid(details));
    expect(JSON.stringify(answer)).not.toContain("secret");
  });

  test("is refused with ten reasons at most", async () => {
    const messages = Array.from({ length: 500 }, () => ({ role: "user" }));
    const answer = await refusal(parseRunInput(post({ ...input, messages }), 100_000));
    expect(answer.body).toHaveProperty(
      "details",
      expect.stringMatching(/^(messages\.\d+\.\w+: is missing; ){10}and maybe more$/),
    );
  });

  test("may have a message without text for its id", async () => {
    const body = { ...input, messages: [{ ...message, id: "" }] };
    expect(await parseRunInput(post(body), MAX)).toEqual(body);
  });
});

describe("a stop", () => {
  test.each<[string, object]>([
    ["", {}],
    [" \n", {}],
    ["{}", {}],
    ['{"runId":"r"}', { runId: "r" }],
    ['{"runId":" r "}', { runId: " r " }],
  ])("%j names %j", async (text, scope) => {
    expect(await parseStopBody(post(text), MAX)).toEqual(scope);
  });

  test("without a body names nothing", async () => {
    expect(await parseStopBody(new Request("http://localhost/", { method: "POST" }), MAX)).toEqual({});
  });

  test.each(["x", "{", "[]", "null", "7", '"r"', '{"run":1}', '{"runId":"r","x":1}', '{"__proto__":{}}'])(
    "%s is no stop request",
    async (text) => {
      expect(await refusal(parseStopBody(post(text), MAX))).toEqual({
        status: 400,
        body: { error: "Invalid stop request" },
      });
    },
  );

  test.each(['{"runId":""}', '{"runId":" "}', '{"runId":null}', '{"runId":7}', '{"runId":{}}'])(
    "%s names no run",
    async (text) => {
      expect(await refusal(parseStopBody(post(text), MAX))).toEqual({ status: 400, body: { error: "Invalid runId" } });
    },
  );

  test("may be too large", async () => {
    expect(await refusal(parseStopBody(post(bytes(MAX + 1)), MAX))).toEqual(tooLarge);
  });
});

describe("a change of a thread", () => {
  test.each<[object, object]>([
    [{}, {}],
    [{ agentId: "a" }, {}],
    [{ name: "New", agentId: "a" }, { title: "New" }],
    [{ archived: false }, { archived: false }],
    [
      { pinned: true, name: "" },
      { pinned: true, title: "" },
    ],
  ])("%j is %j", async (body, update) => {
    expect(await parseThreadUpdate(post(body), MAX)).toEqual(update);
  });

  test.each<[string, unknown]>([
    ["body: must be of type object", []],
    ["body: must be of type object", null],
    ["body: may have name, archived, pinned and agentId", { title: "secret" }],
    ["name: must be of type string", { name: null }],
    ["name: must be of type string", { name: ["secret"] }],
    ["archived: must be of type boolean", { archived: "true" }],
    ["pinned: must be of type boolean", { pinned: 1 }],
    ["agentId: must be of type string", { agentId: 1 }],
  ])("is refused: %s", async (details, body) => {
    expect(await refusal(parseThreadUpdate(post(JSON.stringify(body)), MAX))).toEqual(invalid(details));
  });
});

test("whatever is posted, it is taken or refused with JSON that repeats nothing of it", async () => {
  const SECRET = "SeCrEt";
  const leaf = fc.oneof(fc.constantFrom(SECRET, "", null, 7, true), fc.string());
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: "small" },
      leaf,
      fc.array(tie("any"), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom("id", "role", "content", "runId", SECRET, "__proto__"), tie("any"), { maxKeys: 4 }),
    ),
  })).any;
  const near = fc.record(
    {
      threadId: fc.oneof(fc.constant("t"), value),
      runId: fc.oneof(fc.constant("r"), value),
      messages: fc.oneof(fc.constant([]), value),
      tools: value,
      resume: value,
      name: value,
      archived: value,
    },
    { requiredKeys: [] },
  );
  const body = fc.oneof(
    near.map((given) => JSON.stringify(given)),
    value.map((given) => JSON.stringify(given)),
    fc.string({ unit: "binary" }),
    fc.uint8Array({ maxLength: 50 }).map((raw) => Uint8Array.from(raw)),
  );
  const type = fc.constantFrom(
    "application/json",
    "application/json",
    "application/json",
    "text/plain",
    "x/y+json",
    "",
  );
  const parsers = fc.constantFrom<(request: Request, maxBytes: number) => Promise<unknown>>(
    readJson,
    parseRunInput,
    parseStopBody,
    parseThreadUpdate,
  );
  await fc.assert(
    fc.asyncProperty(body, type, parsers, async (given, contentType, parse) => {
      const thrown = await parse(post(given, { "Content-Type": contentType }), 500).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (thrown === undefined) return;
      if (thrown instanceof Response) expect(await thrown.clone().text()).not.toContain(SECRET);
      await expectRefusal(thrown);
    }),
    times(400),
  );
});

test("a body that the browser shows no stream of is read whole, and bounded", async () => {
  const streamless = (text: string): Request =>
    Object.defineProperty(new Request("http://localhost/", { method: "POST", body: text }), "body", {
      value: undefined,
    });
  expect(await readText(streamless("héllo"), 100)).toBe("héllo");
  await expect(readText(streamless("too long"), 7)).rejects.toMatchObject({ status: 413 });
});
