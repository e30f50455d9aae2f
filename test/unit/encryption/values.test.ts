import "fake-indexeddb/auto";
import { EventType, type BaseEvent } from "@ag-ui/client";
import fc from "fast-check";
import { from } from "rxjs";
import { expect, onTestFinished, test } from "vitest";
import { fromBytes, toBytes } from "../../../src/storage/encryption/value-bytes.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { times } from "../property.js";
import { collect, freshDb, makeRunner, rawAgent } from "../runner/kit.js";
import { chunkOf, claimed, request, settlement } from "../storage/kit.js";
import { encryption } from "./fast-key.js";

const through = (value: unknown): unknown => {
  const { form, bytes } = toBytes(value);
  return fromBytes(form, bytes.slice().buffer);
};

const special = fc.constantFrom<unknown>(
  undefined,
  NaN,
  -0,
  Infinity,
  10n ** 30n,
  new Date(5),
  new Date(NaN),
  /x/gi,
  "\ud800 half",
  "half \udfff",
  "\u2028</script>",
  new Uint8Array([0xe1, 0, 1]),
  new Float64Array([1, NaN]),
  new ArrayBuffer(3),
  new Map<unknown, unknown>([[{ a: 1 }, new Set([undefined, "\ud800"])]]),
  Object.assign(Object.create(null) as object, { a: 1 }),
  // A list with holes.
  Object.assign(Array<unknown>(3), { 1: "x" }),
  JSON.parse('{"__proto__":{"polluted":1},"constructor":1,"toString":null}'),
  new TypeError("odd"),
);
const anything = fc.anything({
  withDate: true,
  withMap: true,
  withSet: true,
  withBigInt: true,
  withSparseArray: true,
  withTypedArray: true,
  withNullPrototype: true,
});
const values = fc.oneof(anything, special, fc.array(special), fc.dictionary(fc.string(), fc.oneof(special, anything)));

test("a value is given back as IndexedDB gives it back", () => {
  fc.assert(
    fc.property(values, (value) => {
      expect(through(value)).toStrictEqual(structuredClone(value));
    }),
    times(500),
  );
});

test("values that hold themselves, or one thing in many places, cost what they are (L19)", () => {
  const circle: { self?: unknown } = {};
  circle.self = circle;
  const again = through(circle) as typeof circle;
  expect(again.self).toBe(again);
  // As a tree it has 2 ** 40 leaves.
  let shared: object = { leaf: true };
  for (let n = 0; n < 40; n++) shared = [shared, shared];
  expect(toBytes(shared).bytes.length).toBeLessThan(10_000);
  expect(() => through(shared)).not.toThrow();
  // Many objects, none of which is in two places, and bytes deep below them.
  const many = Array.from({ length: 110_000 }, (_, n) => ({ n }));
  expect(JSON.stringify(through(many))).toBe(JSON.stringify(many));
  const mixed = [...many, new Date(1)];
  expect((through(mixed) as unknown[]).at(-1)).toEqual(new Date(1));
});

test("large and deep values are given back", () => {
  const text = "ä\ud800x".repeat(3_500_000);
  expect((through({ text }) as { text: string }).text === text).toBe(true);
  let deep: unknown = "bottom";
  for (let n = 0; n < 1_000; n++) deep = { deep };
  expect(through(deep)).toEqual(deep);
  const bytes = new Uint8Array(10_000_000).fill(7);
  expect(Buffer.compare(through(bytes) as Uint8Array, bytes)).toBe(0);
});

test.each([
  ["a Blob", new Blob(["x"])],
  ["a function", () => 1],
  ["a symbol", Symbol("x")],
])("%s has no encrypted form, and is refused", (_what, value) => {
  expect(() => toBytes({ value })).toThrow();
});

test("bytes of a form that is not known are refused", () => {
  expect(() => fromBytes(3, new ArrayBuffer(2))).toThrow(RangeError);
});

test("an encrypted store gives back what a plain one does", async () => {
  const json = fc.jsonValue();
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(values, json), { minLength: 1, maxLength: 4 }), json, async (odd, state) => {
      const given = await Promise.all(
        [{}, { encryption }].map(async (options) => {
          const store = indexedDBRunStore({ ...options, dbName: freshDb() });
          const claim = await claimed(store, "t", "r", { title: "\ud800 t" });
          const events = odd.map((value): BaseEvent => ({ type: EventType.CUSTOM, name: "odd", value }));
          await store.append(claim, chunkOf(claim, 0, events));
          const derived = { ...settlement(claim, odd.length).derived, state };
          await store.settle(claim, settlement(claim, odd.length, { derived }));
          const read = await Promise.all([
            store.chunks("t", 0, -1, Infinity),
            store.stateAfter("t", 0),
            store.closing("t", 0),
            store.input("t", 0),
            store.thread("t"),
            store.messageRows("t", 0, undefined),
            store.claim(request("t", "r")),
          ]);
          await store.close();
          return read;
        }),
      );
      expect(given[1]).toStrictEqual(given[0]);
    }),
    times(40),
  );
});

test("what cannot be encrypted is refused with what it is, and the run can be ended (L7)", async () => {
  const store = indexedDBRunStore({ dbName: freshDb(), encryption });
  onTestFinished(() => store.close());
  const claim = await claimed(store, "t", "r");
  const event = { type: EventType.CUSTOM, name: "file", value: new Blob(["x"]) };
  await expect(store.append(claim, chunkOf(claim, 0, [event]))).rejects.toMatchObject({
    code: "invalid-input",
    message: expect.stringContaining("cannot be encrypted"),
    details: { field: "value[0].event.value" },
  });
  expect(await store.settle(claim, settlement(claim, 0))).toBe("settled");
});

test("an agent's odd values come to the same in runs that are encrypted and in those that are not (L7)", async () => {
  const agent = rawAgent(({ threadId, runId }) =>
    from<BaseEvent[]>([
      { type: EventType.RUN_STARTED, threadId, runId },
      ...[new Blob(["x"]), new Map([[1, 2]]), new Date(5), NaN].map((value) => ({
        type: EventType.CUSTOM,
        name: "odd",
        value,
      })),
      { type: EventType.RUN_FINISHED, threadId, runId },
    ]),
  );
  const input = { threadId: "t", runId: "r", messages: [], tools: [], context: [], state: {}, forwardedProps: {} };
  const [plain, encrypted] = await Promise.all(
    [{}, { encryption }].map(async (options) => {
      const runner = makeRunner(options);
      const events = await collect(runner.run({ threadId: "t", agent: agent.clone(), input }));
      return [events, await collect(runner.connect({ threadId: "t" }))];
    }),
  );
  expect(plain![0]!.map(({ type }) => type)).toContain(EventType.CUSTOM);
  expect(encrypted).toEqual(plain);
});
