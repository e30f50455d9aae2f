import jsonpatch, { type Operation } from "fast-json-patch";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { times } from "../property.js";
import { PatchedDocument } from "../../../src/run/json-patch.js";
import { cloneJson, equalJson } from "../../../src/run/json.js";

const pointer = fc
  .array(
    fc.constantFrom(
      "a",
      "b",
      "list",
      "0",
      "1",
      "2",
      "-",
      "01",
      "",
      "x~1y",
      "x~0y",
      "__proto__",
      "constructor",
      "prototype",
      "toString",
    ),
    {
      maxLength: 4,
    },
  )
  .map((keys) => keys.map((key) => `/${key}`).join(""));
const json = fc
  .oneof(
    fc.constantFrom<unknown>(
      0,
      1,
      "v",
      null,
      true,
      [],
      {},
      [1, [2, 3]],
      { a: { b: [1, { a: 2 }] } },
      { "x/y": 1, "x~y": [0] },
    ),
    // Through JSON: -0 is none, and fast-json-patch makes it 0.
    fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown),
  )
  // A copy each time: fast-json-patch makes a circle of a value that is put into itself.
  .map((value) => cloneJson(value));
const operation = fc.oneof(
  fc.record({ op: fc.constantFrom("add", "replace", "test"), path: pointer, value: json }, { noNullPrototype: true }),
  fc.record({ op: fc.constantFrom("copy", "move"), from: pointer, path: pointer }, { noNullPrototype: true }),
  fc.record({ op: fc.constant("remove"), path: pointer }, { noNullPrototype: true }),
) as fc.Arbitrary<Operation>;
const document = fc
  .record({ a: json, b: json, list: fc.array(json, { maxLength: 3 }), "x/y": json }, { noNullPrototype: true })
  .map((value) => cloneJson(value));

/** Where this differs from fast-json-patch on purpose: what that does there has no meaning in RFC 6902. */
function isOdd({ op, path, ...rest }: Operation): boolean {
  const from = (rest as { from?: string }).from;
  const names = [path, from ?? ""].some((at) => /\/(toString|constructor|01)(\/|$)|\/\//.test(at));
  const rootless = (op === "move" || op === "copy") && (path === "" || from === "" || /\/[^/]*$/.test(from!) === false);
  // The CommonJS build ignores a write to a primitive, its module build throws.
  const primitive = path === "" && (typeof (rest as { value?: unknown }).value !== "object" || op === "remove");
  return names || rootless || primitive || from?.endsWith("/") === true;
}

describe("patched document", () => {
  test("it gives what fast-json-patch gives, and nothing of a patch that fails", () => {
    let applied = 0;
    fc.assert(
      fc.property(document, fc.array(operation, { maxLength: 5 }), (before, patch) => {
        fc.pre(!patch.some(isOdd));
        const given = structuredClone({ before, patch });
        let expected: unknown = before;
        let works = true;
        try {
          expected = jsonpatch.applyPatch(structuredClone(before), structuredClone(patch), true, false).newDocument;
          expected = JSON.parse(JSON.stringify(expected)) as unknown;
        } catch {
          works = false;
        }
        const patched = new PatchedDocument(cloneJson(before));
        expect(patched.apply(patch)).toBe(works);
        expect(patched.root).toEqual(works ? expected : given.before);
        expect({ before, patch }).toEqual(given);
        if (works && patch.length > 0) applied++;
      }),
      times(2_000),
    );
    expect(applied).toBeGreaterThan(50);
  });

  test("any patch that fails is taken back whole", () => {
    fc.assert(
      fc.property(document, fc.array(operation, { maxLength: 6 }), (before, patch) => {
        const patched = new PatchedDocument(cloneJson(before));
        expect(patched.apply([...patch, { op: "test", path: "/no/where", value: 1 }])).toBe(false);
        expect(patched.root).toEqual(before);
      }),
      times(1_000),
    );
  });

  test.each(["/__proto__/polluted", "/constructor/prototype/polluted", "/a/__proto__/polluted"])(
    "%s is refused",
    (path) => {
      const patched = new PatchedDocument({ a: {} });
      expect(patched.apply([{ op: "add", path, value: 1 }])).toBe(false);
      expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    },
  );

  test("a value that went in is a copy", () => {
    const value = { n: 1 };
    const patched = new PatchedDocument({});
    patched.apply([
      { op: "add", path: "/a", value },
      { op: "replace", path: "/a/n", value: 2 },
    ]);
    expect([patched.root, value]).toEqual([{ a: { n: 2 } }, { n: 1 }]);
  });

  test.each([null, 0, "text"])("a state of %j takes no field", (root) => {
    const patched = new PatchedDocument(root);
    expect(patched.apply([{ op: "add", path: "/a", value: 1 }])).toBe(false);
    expect(patched.apply([{ op: "replace", path: "", value: { a: 1 } }])).toBe(true);
    expect(patched.root).toEqual({ a: 1 });
  });

  test("a container that moves into itself is refused", () => {
    const patched = new PatchedDocument({ a: { b: 1 } });
    expect(patched.apply([{ op: "move", from: "/a", path: "/a/b" }])).toBe(false);
    expect(patched.apply([{ op: "move", from: "", path: "/a" }])).toBe(false);
    expect(patched.root).toEqual({ a: { b: 1 } });
  });
});

describe("json", () => {
  test("a copy is equal and shares nothing that can change", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const copy = cloneJson(value);
        expect(copy).toEqual(value);
        expect(equalJson(copy, value)).toBe(true);
        if (typeof value === "object" && value !== null) expect(copy).not.toBe(value);
      }),
    );
  });

  test("__proto__ is a field like any other", () => {
    const value = JSON.parse('{"__proto__":{"a":1}}') as object;
    expect(JSON.stringify(cloneJson(value))).toBe('{"__proto__":{"a":1}}');
    expect(Object.getPrototypeOf(cloneJson(value))).toBe(Object.prototype);
  });

  test.each([
    [{ a: 1 }, { a: 2 }],
    [{ a: 1 }, { b: 1 }],
    [[1], [1, 2]],
    [[], {}],
    [null, {}],
  ])("%j is not %j", (a, b) => {
    expect(equalJson(a, b)).toBe(false);
    expect(equalJson(b, a)).toBe(false);
  });
});
