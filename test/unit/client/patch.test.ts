import fc from "fast-check";
import { expect, test } from "vitest";
import { patched } from "../../../src/client/apply/patch.js";
import { cloneJson } from "../../../src/run/json.js";
import { PatchedDocument } from "../../../src/run/json-patch.js";
import { times } from "../property.js";

const DOCUMENT = {
  list: [1, { a: { b: 1 } }, [2, { c: 3 }], { a: {} }],
  a: { b: { c: 1 }, list: [{ x: 1 }, { x: 2 }] },
  "a/b": { "~": 1 },
  "": { "": 0 },
  constructor: { prototype: { x: 1 } },
  no: null,
};

const PATHS = [
  "",
  "/",
  "//",
  "/list",
  "/list/-",
  "/list/0",
  "/list/1",
  "/list/1/a",
  "/list/1/a/b",
  "/list/2/1/c",
  "/list/2/1",
  "/list/3/a/new",
  "/list/4",
  "/list/9",
  "/list/01",
  "/list/x",
  "/list/-/x",
  "/list/",
  "/list/length",
  "/list/99999999999",
  "/a",
  "/a/b",
  "/a/b/c",
  "/a/b/c/d",
  "/a/list/0",
  "/a/list/1/x",
  "/a/new",
  "/a~1b/~0",
  "/a~1b",
  "/no",
  "/no/x",
  "/nowhere/x",
  "/__proto__/x",
  "/constructor/prototype/x",
  "/toString/x",
  "list",
];

const VALUES: readonly unknown[] = [0, null, "v", [1, { x: 1 }], { b: { c: 1 } }, {}, 1, undefined, { u: undefined }];

const operation = fc
  .record({
    op: fc.constantFrom("add", "add", "replace", "remove", "test", "copy", "move", "move", "no"),
    path: fc.constantFrom(...PATHS),
    from: fc.constantFrom(...PATHS, undefined),
    value: fc.constantFrom(...VALUES),
  })
  .map(({ op, path, from, value }) => ({
    op,
    path,
    ...((op === "copy" || op === "move") && { from }),
    ...((op === "add" || op === "replace" || op === "test") && { value }),
  }));

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(frozen);
    Object.freeze(value);
  }
  return value;
}

/** What a patch of the log's own reader gives; `undefined` where it refuses. */
function reference(document: unknown, patch: readonly object[]): { document: unknown } | undefined {
  // What stands in two places is two things, as in JSON: structuredClone would keep it one, which changes in both.
  const of = new PatchedDocument(cloneJson(document));
  return of.apply(patch as Parameters<PatchedDocument["apply"]>[0]) ? { document: of.root } : undefined;
}

test("it makes of a document what the log's own reader makes of it, and writes to nothing (L2)", () => {
  let applied = 0;
  fc.assert(
    fc.property(fc.array(fc.array(operation, { minLength: 1, maxLength: 4 }), { maxLength: 5 }), (patches) => {
      let document: unknown = frozen(structuredClone(DOCUMENT));
      for (const patch of patches) {
        const before = structuredClone(document);
        const after = patched(document, frozen(patch));
        expect(after).toEqual(reference(document, patch));
        expect(document).toEqual(before);
        if (after === undefined) continue;
        applied++;
        document = frozen(after.document);
      }
    }),
    times(1_000),
  );
  expect(applied).toBeGreaterThan(100);
});

test("what is not on the way to a change is shared", () => {
  const before = { rows: [{ n: 0 }, { n: 1 }], other: { deep: {} } };
  const { document } = patched(before, [{ op: "replace", path: "/rows/1/n", value: 2 }]) as { document: typeof before };
  expect(document).toEqual({ rows: [{ n: 0 }, { n: 2 }], other: { deep: {} } });
  expect([document.rows[0], document.other]).toEqual([before.rows[0], before.other]);
  expect(document.rows[0]).toBe(before.rows[0]);
  expect(document.other).toBe(before.other);
  expect(document.rows[1]).not.toBe(before.rows[1]);
});

test("what was copied to two places changes in one", () => {
  const after = patched({ a: { n: 1 } }, [
    { op: "add", path: "/a/m", value: 1 },
    { op: "copy", from: "/a", path: "/b" },
    { op: "replace", path: "/b/n", value: 2 },
  ]);
  expect(after).toEqual({ document: { a: { n: 1, m: 1 }, b: { n: 2, m: 1 } } });
});

test.each([
  ["no list", {}],
  ["no operation", [null]],
  ["a number", [7]],
])("a patch that is %s is refused", (_, patch) => {
  expect(patched({}, patch)).toBeUndefined();
});
