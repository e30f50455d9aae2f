import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { ContentPart, Message } from "@ag-ui/core";
import { EventType } from "@ag-ui/core";
import { MockLanguageModelV4 } from "ai/test";
import fc from "fast-check";
import { expect, test } from "vitest";
import { times } from "../property.js";
import { asks, inputOf, runOf } from "./kit.js";

type Part = LanguageModelV4StreamPart;

const finish: Part = {
  type: "finish",
  finishReason: { unified: "stop", raw: "stop" },
  usage: {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  },
};

/** A model that answers each request with the next list of parts. */
function modelOf(...answers: readonly (readonly Part[])[]): MockLanguageModelV4 {
  const left = [...answers];
  return new MockLanguageModelV4({
    doStream: async () => ({
      stream: new ReadableStream({
        start(controller) {
          for (const part of [{ type: "stream-start", warnings: [] } as Part, ...(left.shift() ?? []), finish])
            controller.enqueue(part);
          controller.close();
        },
      }),
    }),
  });
}

const run = { tools: { add: { parameters: {}, execute: () => "ok" } }, settings: { maxRetries: 0 } };

const id = fc.constantFrom("0", "1", "");
const toolName = fc.constantFrom("add", "unknown", "");
const providerMetadata = fc.constantFrom({}, { p: { signature: "x" } });
const providerExecuted = fc.boolean();
const of = <T extends string>(...types: T[]) => fc.constantFrom(...types);
const anyPart: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ type: of("text-start", "text-end", "reasoning-start", "reasoning-end"), id, providerMetadata }),
  fc.record({ type: of("text-delta", "reasoning-delta"), id, delta: fc.constantFrom("", "a"), providerMetadata }),
  fc.record({ type: of("tool-input-start"), id, toolName, providerExecuted }),
  fc.record({ type: of("tool-input-delta"), id, delta: fc.constantFrom("", "{}", '{"a":') }),
  fc.record({
    type: of("tool-call"),
    toolCallId: id,
    toolName,
    input: fc.constantFrom("", "{}", "{bad", "null"),
    providerExecuted,
    providerMetadata,
  }),
  fc.record({ type: of("tool-result"), toolCallId: id, toolName, result: fc.constant("x") }),
  fc.record({ type: of("source"), sourceType: fc.constant("url" as const), id, url: fc.constant("https://a.test/") }),
);

/** The SDK itself refuses deltas and ends of what was not begun. */
function begun(parts: readonly Part[]): Part[] {
  const open = new Set<string>();
  return parts.flatMap((part): Part[] => {
    const [, kind, what] = /^(text|reasoning)-(start|delta|end)$/.exec(part.type) ?? [];
    if (kind === undefined || !("id" in part)) return [part];
    const key = `${kind} ${part.id}`;
    const first = what === "start" || open.has(key) ? [] : [{ type: `${kind}-start`, id: part.id } as Part];
    if (what === "end") open.delete(key);
    else open.add(key);
    return [...first, part];
  });
}

test("whatever parts a provider gives, the run is valid and each call has a result (L3, L7)", async () => {
  const answers = fc.array(fc.array(anyPart, { maxLength: 12 }), { maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(answers, fc.boolean(), async (given, repairs) => {
      const settings = repairs ? { settings: { ...run.settings, repairToolCall: async () => null } } : {};
      const options = { model: modelOf(...given.map(begun)), ...run, ...settings };
      const { end, messages } = await runOf(options, inputOf(asks("hi")));
      expect(end.type).toBe(EventType.RUN_FINISHED);
      const results = messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : []));
      for (const message of messages) {
        if (message.role !== "assistant") continue;
        for (const call of message.toolCalls ?? []) {
          if (call.metadata?.["providerExecuted"] !== true) expect(results).toContain(call.id);
        }
      }
    }),
    times(100),
  );
});

const text = fc.constantFrom("", "a", "{}", "{bad");
const source: fc.Arbitrary<Exclude<ContentPart, { type: "text" }>["source"]> = fc.oneof(
  fc.record({
    type: of("data"),
    value: fc.constantFrom("", "AAAA", "A", "!", "data:image/png;base64,AAAA", "data:"),
    mimeType: fc.constantFrom("image/png", "image", "", "/"),
  }),
  fc.record({
    type: of("url"),
    value: fc.constantFrom("", "x", "http://", "http://localhost/x", "data:,%zz", "data:;base64,AAAA", "javascript:1"),
  }),
);
const content = fc.array(
  fc.oneof(
    fc.record({ type: of("text"), text }),
    fc.record({ type: of("image", "audio", "video", "document"), source }),
  ),
  { maxLength: 3 },
);
const encryptedValue = fc.constantFrom("opaque", "{}", "{bad", '{"p":1}', '{"p":{"a":1}}');
const call = fc.record({
  id,
  type: of("function"),
  function: fc.record({ name: toolName, arguments: text }),
  encryptedValue,
  metadata: fc.constantFrom({}, { providerExecuted: true }),
});
const file = fc.constantFrom({}, { mediaType: "image/png", data: "!" }, { mediaType: "image/png", url: "http://" });
const anyMessage: fc.Arbitrary<Message> = fc.oneof(
  fc.record({ id: fc.uuid(), role: of("user"), content }),
  fc.record({ id: fc.uuid(), role: of("system", "developer"), content: text }),
  fc.record({ id: fc.uuid(), role: of("reasoning"), content: text, encryptedValue }),
  fc.record({ id: fc.uuid(), role: of("assistant"), content: text, toolCalls: fc.array(call, { maxLength: 2 }) }),
  fc.record({ id: fc.uuid(), role: of("tool"), toolCallId: id, content: fc.oneof(text, content) }),
  fc.record({ id: fc.uuid(), role: of("activity"), activityType: of("file", "other"), content: file }),
);

test("whatever a thread holds, its next run asks the model (L19)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyMessage, { maxLength: 8 }), async (thread) => {
      const { end } = await runOf({ model: modelOf(), ...run }, inputOf([...thread, ...asks("go")]));
      expect(end.type).toBe(EventType.RUN_FINISHED);
    }),
    times(100),
  );
});
