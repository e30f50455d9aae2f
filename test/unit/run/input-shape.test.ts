import type { Message } from "@ag-ui/client";
import { RunAgentInputSchema } from "@ag-ui/core/schemas";
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { INPUT, issuesOf, known } from "../../../src/run/input-shape.js";
import { flawOf } from "../../../src/run/json.js";
import { times } from "../property.js";
import { sentBy } from "../wire/http-clients.js";

const input = { threadId: "t", runId: "r", messages: [] as unknown[] };

/** Values near those of AG-UI: each field is right, of another type, or missing. */
const anything = fc.constantFrom<unknown>(undefined, null, 0, "", "text", [], [0], {}, { a: null }, true);
const near = (fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 12, arbitrary: fc.record(fields, { requiredKeys: [] }) }, { weight: 1, arbitrary: anything });
const or = (...right: readonly unknown[]): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 20, arbitrary: fc.constantFrom(...right) }, { weight: 1, arbitrary: anything });
const list = (item: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 20, arbitrary: fc.array(item, { maxLength: 3 }) }, { weight: 1, arbitrary: anything });
const full = <T extends Readonly<Record<string, fc.Arbitrary<unknown>>>>(fields: T): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 3, arbitrary: fc.record(fields) }, { weight: 1, arbitrary: near(fields) });

const source = full({ type: or("data", "url", "file", "other"), value: or("v"), mimeType: or("m", undefined) });
const part = full({
  type: or("text", "image", "audio", "video", "document", "other"),
  text: or("t"),
  id: or("i", undefined),
  source,
  metadata: or({}, 7, undefined),
});
const toolCall = full({
  id: or("c"),
  type: or("function"),
  function: full({ name: or("n"), arguments: or("{}") }),
  encryptedValue: or(undefined, "e"),
  metadata: or(undefined, {}),
});
const message = full({
  id: or("m"),
  role: or("user", "assistant", "system", "developer", "tool", "activity", "reasoning", "other"),
  content: fc.oneof(or("text"), or({}), list(part)),
  name: or(undefined, "n"),
  toolCallId: or("c"),
  toolCalls: fc.oneof(or(undefined), list(toolCall)),
  activityType: or("a"),
  error: or(undefined, "e"),
  encryptedValue: or(undefined, "e"),
  subagentRunId: or(undefined, "s"),
  metadata: or(undefined, {}),
});
const posted = full({
  threadId: or("t"),
  runId: or("r"),
  protocolVersion: or(undefined, "1.0"),
  parentRunId: or(undefined, "p"),
  state: anything,
  messages: list(message),
  tools: list(full({ name: or("n"), description: or("d"), parameters: anything, metadata: or(undefined, {}) })),
  context: list(full({ description: or("d"), value: or("v") })),
  forwardedProps: or({}, 7, undefined),
  resume: list(
    full({ interruptId: or("i"), status: or("resolved", "cancelled"), payload: anything, metadata: or(undefined, {}) }),
  ),
  unknown: anything,
});

test("what is accepted is what AG-UI's own schema accepts", () => {
  let accepted = 0;
  fc.assert(
    fc.property(posted, (body) => {
      const isRight = RunAgentInputSchema.safeParse(body).success;
      if (isRight) accepted++;
      expect(issuesOf(body, INPUT, 10).length === 0).toBe(isRight);
    }),
    times(5_000),
  );
  expect(accepted).toBeGreaterThan(0);
});

test("each issue that is told is one that AG-UI's own schema has, or stands within one", () => {
  fc.assert(
    fc.property(posted, (body) => {
      const told = RunAgentInputSchema.safeParse(body).error?.issues.map(({ path }) => path.join(".")) ?? [];
      for (const { path } of issuesOf(body, INPUT, 10)) {
        const place = path.join(".");
        expect(told.some((named) => place === named || place.startsWith(`${named}.`) || named === "")).toBe(true);
      }
    }),
    times(1_000),
  );
});

/** A items of a million wrong items, and how many of them were looked at. */
function watched(item: unknown): { readonly items: unknown[]; readonly seen: () => number } {
  let seen = 0;
  const items = new Proxy(Array.from({ length: 1_000_000 }).fill(item), {
    get(target, key) {
      if (typeof key === "string" && /^\d+$/.test(key)) seen++;
      return Reflect.get(target, key) as unknown;
    },
  });
  return { items, seen: () => seen };
}

test.each<[string, (items: unknown[]) => unknown]>([
  ["messages", (messages) => ({ ...input, messages })],
  ["tools", (tools) => ({ ...input, tools })],
  ["context", (context) => ({ ...input, context })],
  ["resume", (resume) => ({ ...input, resume })],
  ["messages.0.content", (content) => ({ ...input, messages: [{ id: "m", role: "user", content }] })],
  ["messages.0.toolCalls", (toolCalls) => ({ ...input, messages: [{ id: "m", role: "assistant", toolCalls }] })],
])("of a million zeros in %s the first ten are looked at (L19)", (place, bodyWith) => {
  const { items: zeros, seen } = watched(0);
  const issues = issuesOf(bodyWith(zeros), INPUT, 10);
  expect(seen()).toBe(10);
  expect(issues.map(({ path }) => path.join("."))).toEqual(Array.from({ length: 10 }, (_, at) => `${place}.${at}`));
});

test("a value that stands in itself, or doubles with each level, is refused (L19)", () => {
  const ring: unknown[] = [];
  ring.push({ ring });
  expect(flawOf(ring)).toBe("is nested deeper than 200 levels");
  let doubled: unknown = [];
  for (let level = 0; level < 60; level++) doubled = [doubled, doubled];
  expect(flawOf(doubled)).toBe("has too many fields");
  const sparse: unknown[] = [];
  sparse.length = 4_000_000_000;
  expect(flawOf({ sparse })).toBe("has too many fields");
});

/** Values that a newer version may send: with fields, parts and sources that nobody knows. */
const extra = fc.record({ newField: fc.constantFrom(1, null, { deep: true }) }, { requiredKeys: [] });
const plus = (fields: fc.Arbitrary<object>): fc.Arbitrary<object> =>
  fc.tuple(fields, extra).map(([one, other]) => ({ ...one, ...other }));
const newerSource = plus(
  fc.constantFrom<object>(
    { type: "data", value: "v", mimeType: "m" },
    { type: "url", value: "v" },
    { type: "stream", of: 1 },
  ),
);
const newerPart = fc.oneof(
  plus(fc.constant({ type: "text", text: "t" })),
  plus(fc.constant({ type: "hologram", beams: [1] })),
  newerSource.chain((one) => plus(fc.constant({ type: "image", source: one }))),
);
const newerMessage = fc.oneof(
  fc.array(newerPart, { maxLength: 3 }).chain((content) => plus(fc.constant({ id: "u", role: "user", content }))),
  plus(
    fc.constant({
      id: "a",
      role: "assistant",
      toolCalls: [{ id: "c", type: "function", function: { name: "n", arguments: "", newField: 1 }, newField: 1 }],
      metadata: { kept: { newField: 1 } },
    }),
  ),
);

test("what a newer version sends is left out as AG-UI's own client leaves it out, and the rest is valid", async () => {
  const quiet = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  onTestFinished(() => quiet.mockRestore());
  await fc.assert(
    fc.asyncProperty(fc.array(newerMessage, { maxLength: 3 }), async (messages) => {
      const [before, state] = [structuredClone(messages), { newField: 1 }];
      const kept = known({ ...input, messages, state, newField: 1 }, INPUT) as { messages: unknown };
      expect(issuesOf(kept, INPUT, 10)).toEqual([]);
      expect(RunAgentInputSchema.safeParse(kept).success).toBe(true);
      expect(messages).toEqual(before);
      const sent = (await sentBy("1.0.0", { messages: messages as Message[], state }, {})) as typeof kept;
      expect(kept.messages).toEqual(sent.messages);
      expect(kept).toMatchObject({ state });
    }),
    times(300),
  );
});

test("what is known stays the same value, malformed or not", () => {
  const described = {
    ...input,
    messages: [{ id: "u", role: "user", content: [{ type: "text", text: "t", metadata: { any: 1 } }] }],
    tools: [{ name: "n", description: "d", parameters: { any: 1 } }],
    state: { any: 1 },
    forwardedProps: { any: 1 },
  };
  expect(known(described, INPUT)).toBe(described);
  const malformed = { ...input, messages: [{ id: "u", role: "wizard", content: 5 }] };
  expect(known(malformed, INPUT)).toBe(malformed);
  const sparse = { ...input, messages: Array.from({ length: 3 }) };
  sparse.messages.length = 2 ** 32 - 1;
  expect(issuesOf(known(sparse, INPUT), INPUT, 1)).toHaveLength(1);
});
