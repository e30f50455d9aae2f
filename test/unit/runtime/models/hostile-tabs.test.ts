import { describe, expect, test, vi } from "vitest";
import { nextTask } from "../../../../src/platform/clock.js";
import { checkModelFrame, checkModelOffer, type ModelPart } from "../../../../src/wire/model-frames.js";
import { all, errorOf, finish, saying, Tabs, textOf, textStart, whole } from "./kit.js";

const deep = (): object => {
  let nested = {};
  for (let level = 0; level < 1_000; level++) nested = { nested };
  return nested;
};

const part = (given: unknown): unknown => ({ type: "part", part: given });

const HOSTILE: readonly (readonly [string, unknown])[] = [
  ["nothing", undefined],
  ["null", null],
  ["a number", 7],
  ["a list", [[]]],
  ["a frame of another kind", { type: "chunk" }],
  ["a part that is none", part("text")],
  ["a part without a type", part({ id: "0" })],
  ["a part whose type is no text", part({ type: { toString: 1 } })],
  ["a delta without text", part({ type: "text-delta", id: "0" })],
  ["a delta of an object", part({ type: "text-delta", id: "0", delta: {} })],
  ["a tool call without input", part({ type: "tool-call", toolCallId: "c", toolName: "t" })],
  ["a start without warnings", part({ type: "stream-start" })],
  ["a finish without usage", part({ ...finish, usage: undefined })],
  ["a finish with odd tokens", part({ ...finish, usage: { inputTokens: { total: "1" }, outputTokens: {} } })],
  ["a finish whose reason is a text", part({ ...finish, finishReason: "stop" })],
  ["a field that changes prototypes", part(JSON.parse('{ "type": "raw", "rawValue": { "__proto__": { "a": 1 } } }'))],
  ["a value of any depth", part({ type: "raw", rawValue: deep() })],
  ["a large text", part({ type: "text-delta", id: "0", delta: "x".repeat(9 * 2 ** 20) })],
  ["a large file", part({ type: "file", mediaType: "image/png", data: new Uint8Array(9 * 2 ** 20) })],
  ["an error that is none", { type: "error", error: "no" }],
  ["an error without a message", { type: "error", error: { code: "closed" } }],
];

test.each(HOSTILE)("%s costs the request and nothing else (L19)", async (_, hostile) => {
  const tabs = new Tabs();
  const bad = tabs.openRaw((port) => port.postMessage(hostile));
  const { code, message } = await errorOf(all(tabs.ask()));
  expect(code).toBe("host-failed");
  expect(message).toMatch(/^A tab that runs a language model sent /);
  bad.close();
  tabs.open(() => saying(whole("a")));
  expect(textOf(await all(tabs.ask()))).toBe("a");
});

test("a tab that sends without credit is cut off: what it sends costs a window (L14, L19)", async () => {
  const tabs = new Tabs();
  tabs.openRaw((port) => {
    for (let n = 0; n < 5_000; n++) port.postMessage(part({ type: "text-delta", id: "0", delta: "x".repeat(100) }));
  });
  const parts = tabs.ask();
  await parts.next();
  for (let task = 0; task < 200; task++) await nextTask();
  expect((await errorOf(all(parts))).message).toContain("more than it had credit for");
});

test("parts of later versions are left out", async () => {
  const tabs = new Tabs();
  tabs.openRaw((port) => {
    for (const one of [{ type: "ping" }, { type: "hologram", depth: 3 }, ...whole("a")]) port.postMessage(part(one));
    port.postMessage({ type: "end" });
  });
  expect(await all(tabs.ask())).toEqual(whole("a"));
});

test("parts of later versions take credit, and give it back: an answer of many goes on (L13)", async () => {
  const tabs = new Tabs();
  const unknown: ModelPart[] = Array.from({ length: 100 }, () => ({ type: "hologram" }));
  tabs.open(() => saying([...unknown, ...whole("a")]));
  expect(await all(tabs.ask())).toEqual(whole("a"));
});

test("an error of a tab has few details, and no code that there is not", async () => {
  const tabs = new Tabs();
  const long = "x".repeat(101);
  const details = {
    threadId: "t",
    name: long,
    statusCode: "429",
    responseHeaders: { "retry-after": long, other: "x" },
  };
  tabs.openRaw((port) => port.postMessage({ type: "error", error: { code: "made-up", message: "no", details } }));
  const failed = await errorOf(all(tabs.ask()));
  expect(failed).toMatchObject({ code: "host-failed", message: "no" });
  expect(failed.details).toEqual({});
  const good = { name: "AI_APICallError", statusCode: 429, responseHeaders: { "retry-after": "7" } };
  const error = { code: "provider-unavailable", message: "no", details: { ...good, url: "x" } };
  expect(checkModelFrame({ type: "error", error })).toEqual({ type: "error", error: { ...error, details: good } });
});

test("nonsense on the port of an offer changes nothing", async () => {
  const tabs = new Tabs();
  const tab = tabs.open(() => saying(whole("a")));
  for (const nonsense of [null, 7, "stop", [], { type: "visible" }, { type: "visible", visible: "no" }, { type: {} }]) {
    tab.port.postMessage(nonsense);
  }
  expect(textOf(await all(tabs.ask()))).toBe("a");
});

test("a tab that ends each request at once with nothing: the answer is empty, as it said", async () => {
  const tabs = new Tabs();
  tabs.openRaw((port) => port.postMessage({ type: "end" }));
  expect(await all(tabs.ask())).toEqual([]);
});

test("a text block that is never opened is handed on as it came: its reader decides", async () => {
  const tabs = new Tabs();
  tabs.open(() => saying([textStart("a"), { type: "text-end", id: "b" }]));
  await vi.waitFor(async () => expect(await all(tabs.ask())).toHaveLength(2));
});

describe("an offer", () => {
  test.each([
    [undefined],
    [{}],
    [{ model: "" }],
    [{ model: 7 }],
    [{ model: "x".repeat(201) }],
    [{ model: "m", continues: "yes" }],
    [{ model: "m", visible: 1 }],
  ])("%j is refused", async (offer) => {
    expect(await errorOf((async () => checkModelOffer(offer))())).toMatchObject({ code: "invalid-input" });
  });

  test("has only what offers have", () => {
    const offer = { model: "m", continues: true, visible: false };
    expect(checkModelOffer({ ...offer, other: 1 })).toEqual(offer);
  });
});

test("a date in the metadata of an answer is none of the flaws", () => {
  const metadata = part({ type: "response-metadata", timestamp: new Date(0) });
  expect(checkModelFrame(metadata)).toEqual(metadata);
});
