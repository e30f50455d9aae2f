import commonJs, { type Operation } from "fast-json-patch";
// @ts-expect-error: it has no types of its own
import * as module from "fast-json-patch/index.mjs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { times, untilMet } from "../property.js";
import { MAX_COPIED_DOCUMENT, PatchedDocument, type PatchResult } from "../../../src/run/json-patch.js";
import { PATCH_BOUNDS } from "../../../src/run/patch-bounds.js";
import { cloneJson, equalJson } from "../../../src/run/json.js";

/** One patch of a document that stays as it is, as a tab applies it to a state that it has handed out. */
function patched(document: unknown, patch: unknown): PatchResult & { readonly document: unknown } {
  const after = new PatchedDocument(document);
  const result = after.apply(patch);
  return { ...result, document: result.is === "applied" ? after.root : document };
}

const KEYS = [
  "a",
  "b",
  "list",
  "0",
  "1",
  "2",
  "-",
  "01",
  "",
  "9",
  "99999999999",
  "4294967296",
  "x~1y",
  "x~0y",
  "length",
  "push",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "x",
];
const pointer = fc.oneof(
  { weight: 9, arbitrary: fc.array(fc.constantFrom("a", "b", "list", "0", "1", "-", "x~1y"), { maxLength: 3 }) },
  { weight: 4, arbitrary: fc.array(fc.constantFrom(...KEYS), { maxLength: 4 }) },
);
const path = fc.oneof(
  { weight: 30, arbitrary: pointer.map((keys) => keys.map((key) => `/${key}`).join("")) },
  { weight: 1, arbitrary: fc.constantFrom("a", "list/0", "~") },
);
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
      ["text", { a: {} }, [{}], { a: 1 }, {}],
      [{}, { a: {}, toString: {} }, "text", [[]], 5],
      { a: { b: [1, { a: 2 }] } },
      { "x/y": 1, "x~y": [0] },
      { constructor: { prototype: { x: 1 } }, toString: { a: 1 }, length: 2 },
      { hasOwnProperty: 1 },
      JSON.parse('{"__proto__":{"a":1}}'),
    ),
    // Through JSON: -0 is none, and fast-json-patch makes it 0.
    fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown),
  )
  // A copy each time: fast-json-patch makes a circle of a value that is put into itself.
  .map((value) => cloneJson(value));
const operation = fc.oneof(
  { weight: 8, arbitrary: fc.record({ op: fc.constantFrom("add", "replace", "test"), path, value: json }) },
  { weight: 8, arbitrary: fc.record({ op: fc.constantFrom("copy", "move"), from: path, path }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant("remove"), path }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constantFrom<unknown>("toString", "valueOf", "constructor", "_get", "no", ["add"], 7, null),
      path,
      value: json,
      newDocument: json,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<unknown>(
      null,
      7,
      [],
      { op: "add", path: "/a" },
      { op: "add", path: "/a", value: { u: undefined } },
      { op: "copy", path: "/a" },
    ),
  },
);
const document = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ a: json, b: json, list: fc.array(json, { maxLength: 3 }), "x/y": json }).map(cloneJson),
  },
  { weight: 1, arbitrary: json },
);

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(frozen);
    Object.freeze(value);
  }
  return value;
}

/** What fast-json-patch makes of it as the client calls it; undefined where it refuses. */
function reference(
  { applyPatch }: { applyPatch: typeof commonJs.applyPatch },
  before: unknown,
  patch: readonly unknown[],
): { readonly document: unknown } | undefined {
  try {
    const after = applyPatch(cloneJson(before), cloneJson(patch) as Operation[], true, false);
    const text = JSON.stringify(after.newDocument);
    return { document: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** Readers of Node, and those of browsers. */
const BUILDS = [commonJs, module as { applyPatch: typeof commonJs.applyPatch }];

describe("a patch", () => {
  test("it gives what fast-json-patch gives, nothing where that refuses it, and all readers the same (L2)", async () => {
    const seen = { applied: 0, refused: 0, unsafe: 0 };
    const cases = fc.tuple(document, fc.array(operation, { minLength: 1, maxLength: 5 }));
    const judge = async ([before, patch]: typeof cases extends fc.Arbitrary<infer Case>
      ? Case
      : never): Promise<void> => {
      frozen(before);
      frozen(patch);
      // The log's, which changes in place what belongs to it, and the tab's, which never does.
      const log = new PatchedDocument(before);
      log.apply([{ op: "add", path: "/first", value: 1 }]);
      log.apply([{ op: "remove", path: "/first" }]);
      const result = log.apply(patch);
      const { document: after, ...said } = patched(before, patch);
      expect(said).toEqual(result);
      expect(log.root).toEqual(after);
      if (result.is !== "exceeds") seen[result.is]++;
      if (result.is === "unsafe") expect(after).toBe(before);
      else
        for (const build of BUILDS)
          expect({ document: after, works: result.is === "applied" }).toEqual({
            document: before,
            works: false,
            ...works(reference(build, before, patch)),
          });
    };
    await fc.assert(fc.asyncProperty(cases, judge), times(1_500));
    await untilMet(seen, cases, judge);
  });

  const works = (given: { readonly document: unknown } | undefined) => given && { ...given, works: true };

  test("only what reaches for what is not the document's own is unsafe", () => {
    const plain = fc.array(fc.constantFrom("a", "b", "list", "0", "1", "-", "x~1y"), { minLength: 1, maxLength: 3 });
    const place = plain.map((keys) => keys.map((key) => `/${key}`).join(""));
    const change = fc.oneof(
      fc.record({ op: fc.constantFrom("add", "replace", "test"), path: place, value: json }),
      fc.record({ op: fc.constantFrom("copy"), from: place, path: place }),
      fc.record({ op: fc.constant("remove"), path: place }),
    );
    const holder = fc.record({ a: json, b: json, list: fc.array(json) });
    fc.assert(
      fc.property(holder, fc.array(change, { maxLength: 5 }), (before, patch) => {
        expect(patched(before, patch).is).not.toBe("unsafe");
      }),
      times(500),
    );
  });

  test.each<[string, unknown, unknown[]]>([
    ["moves what an object inherits", {}, [{ op: "move", from: "/toString", path: "/x" }]],
    ["copies what an object inherits", {}, [{ op: "copy", from: "/constructor", path: "/x" }]],
    ["copies what a list inherits", { list: [] }, [{ op: "copy", from: "/list/push", path: "/x" }]],
    ["copies a list's length", { list: [1] }, [{ op: "copy", from: "/list/length", path: "/x" }]],
    ["makes what an object inherits the root", {}, [{ op: "copy", from: "/toString/name", path: "" }]],
    ["makes nothing the root", {}, [{ op: "move", from: "/none", path: "" }]],
    ["replaces what an object inherits", {}, [{ op: "replace", path: "/toString", value: 1 }]],
    ["removes what an object inherits", {}, [{ op: "remove", path: "/valueOf" }]],
    ["moves the root into itself", {}, [{ op: "move", from: "", path: "/x" }]],
    ["copies from a pointer without a slash", { a: 1 }, [{ op: "copy", from: "a", path: "/x" }]],
    ["is an operation that objects inherit", {}, [{ op: "valueOf", path: "/a", newDocument: { stolen: true } }]],
    ["is an operation that only looks", { a: 1 }, [{ op: "_get", path: "/a" }]],
    ["is an operation in a list", { a: 1 }, [{ op: ["add"], path: "/a", value: 2 }]],
    [
      "writes to what an object inherits, once the list has moved up",
      [0, { toString: {} }, {}],
      [{ op: "move", from: "/0", path: "/1/toString/polluted" }],
    ],
    ["writes to a text, once the list has moved up", [0, {}, "text"], [{ op: "move", from: "/0", path: "/1/x" }]],
    ["adds to a number", 7, [{ op: "add", path: "/a", value: 1 }]],
  ])("that %s is unsafe and changes nothing (L19)", (_what, before, patch) => {
    const given = frozen(cloneJson(before));
    expect(patched(given, patch)).toEqual({ is: "unsafe", why: expect.any(String) as string, document: before });
    const log = new PatchedDocument(given);
    expect(log.apply([{ op: "test", path: "", value: before }, ...patch]).is).toBe("unsafe");
    expect(log.root).toEqual(before);
    expect((Object.prototype.toString as unknown as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  test("what an object has of its own is no other than any field, whatever its name", () => {
    const own = { toString: 1, constructor: { name: "c" }, hasOwnProperty: [1] };
    const patch = [
      { op: "move", from: "/toString", path: "/x" },
      { op: "copy", from: "/constructor/name", path: "/y" },
      { op: "replace", path: "/hasOwnProperty/0", value: 2 },
      { op: "add", path: "/valueOf", value: 3 },
    ];
    const after = { constructor: { name: "c" }, hasOwnProperty: [2], x: 1, y: "c", valueOf: 3 };
    expect(patched(own, patch)).toMatchObject({ is: "applied", document: after });
  });

  test.each(["/__proto__/polluted", "/constructor/prototype/polluted", "/a/__proto__/polluted", "/__proto__"])(
    "%s is refused",
    (at) => {
      for (const patch of [
        [{ op: "add", path: at, value: 1 }],
        [{ op: "copy", from: at, path: "/x" }],
        [{ op: "move", from: "/a", path: at }],
      ]) {
        expect(patched({ a: {} }, patch).is).toBe("refused");
      }
      expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    },
  );

  test("any patch that fails is taken back whole", () => {
    fc.assert(
      fc.property(document, fc.array(operation, { maxLength: 6 }), (before, patch) => {
        const log = new PatchedDocument(before);
        expect(log.apply([...patch, { op: "test", path: "/no/where", value: 1 }]).is).not.toBe("applied");
        expect(log.root).toEqual(before);
      }),
      times(1_000),
    );
  });

  test("a value that went in stays as it was", () => {
    const value = { n: 1 };
    const log = new PatchedDocument({});
    log.apply([
      { op: "add", path: "/a", value },
      { op: "replace", path: "/a/n", value: 2 },
    ]);
    expect([log.root, value]).toEqual([{ a: { n: 2 } }, { n: 1 }]);
  });

  test("what is not on the way to a change is shared", () => {
    const before = { rows: [{ n: 0 }, { n: 1 }], other: { deep: {} } };
    const after = patched(before, [{ op: "replace", path: "/rows/1/n", value: 2 }]).document as typeof before;
    expect(after).toEqual({ rows: [{ n: 0 }, { n: 2 }], other: { deep: {} } });
    expect(after.rows[0]).toBe(before.rows[0]);
    expect(after.other).toBe(before.other);
    expect(after.rows[1]).not.toBe(before.rows[1]);
  });

  test("what was copied to two places changes in one", () => {
    const after = patched({ a: { n: 1 } }, [
      { op: "add", path: "/a/m", value: 1 },
      { op: "copy", from: "/a", path: "/b" },
      { op: "replace", path: "/b/n", value: 2 },
    ]);
    expect(after.document).toEqual({ a: { n: 1, m: 1 }, b: { n: 2, m: 1 } });
  });

  test.each([null, 0, "text"])("a state of %j takes no field", (root) => {
    const log = new PatchedDocument(root);
    expect(log.apply([{ op: "add", path: "/a", value: 1 }]).is).not.toBe("applied");
    expect(log.apply([{ op: "replace", path: "", value: { a: 1 } }]).is).toBe("applied");
    expect(log.root).toEqual({ a: 1 });
  });

  test.each([
    ["no list", {}],
    ["no operation", [null]],
    ["a number", [7]],
    ["a list", [[]]],
  ])("a patch that is %s is refused", (_, patch) => {
    expect(patched({}, patch)).toEqual({ is: "refused", document: {} });
  });

  test("a date is no container", () => {
    const at = new Date();
    const log = new PatchedDocument({ at });
    expect(log.apply([{ op: "add", path: "/at/x", value: 1 }]).is).toBe("refused");
    expect(log.root).toEqual({ at });
  });
});

const nested = (depth: number): unknown => {
  let value: unknown = 0;
  for (let n = 0; n < depth; n++) value = n % 2 === 0 ? [value] : { a: value };
  return value;
};

describe("what a patch may cost (L19)", () => {
  const bounds = { operations: 3, copied: 100, moved: 5, depth: 5 };
  const add = { op: "add", path: "/a", value: 0 };
  const text = "x".repeat(92); // 100 with what a value costs itself

  test.each<[string, unknown, unknown[], unknown]>([
    ["as many operations as it may", {}, [add, add, add], "applied"],
    ["one more", {}, [add, add, add, add], "operations"],
    ["copies as much as it may", { text }, [{ op: "copy", from: "/text", path: "/b" }], "applied"],
    ["copies more", { text: `${text}x` }, [{ op: "copy", from: "/text", path: "/b" }], "copied"],
    [
      "copies more in two operations",
      { text },
      [
        { op: "copy", from: "/text", path: "/b" },
        { op: "copy", from: "/text/none", path: "/c" },
        { op: "copy", from: "/text", path: "/c" },
      ].toSpliced(1, 1),
      "copied",
    ],
    [
      "pushes aside as many items as it may",
      { list: [1, 2, 3, 4, 5] },
      [{ op: "add", path: "/list/0", value: 0 }],
      "applied",
    ],
    ["pushes aside more", { list: [1, 2, 3, 4, 5, 6] }, [{ op: "add", path: "/list/0", value: 0 }], "moved"],
    [
      "pushes aside more in two operations",
      { list: [1, 2, 3] },
      [
        { op: "remove", path: "/list/0" },
        { op: "move", from: "/list/0", path: "/list/0" },
      ],
      "moved",
    ],
    [
      "adds at the end of a long list",
      { list: [1, 2, 3, 4, 5, 6] },
      [{ op: "add", path: "/list/-", value: 0 }],
      "applied",
    ],
    ["adds as deep as it may", {}, [{ op: "add", path: "/a", value: nested(4) }], "applied"],
    ["adds deeper", {}, [{ op: "add", path: "/a", value: nested(5) }], "depth"],
    ["replaces deeper", { a: 1 }, [{ op: "replace", path: "/a", value: nested(5) }], "depth"],
    ["makes a deeper root", {}, [{ op: "add", path: "", value: nested(6) }], "depth"],
    ["copies to where it is too deep", { a: nested(4) }, [{ op: "copy", from: "/a", path: "/a/a" }], "depth"],
    [
      "moves to where it is as deep as it may be",
      { a: {}, b: nested(3) },
      [{ op: "move", from: "/b", path: "/a/b" }],
      "applied",
    ],
    ["moves to where it is too deep", { a: {}, b: nested(4) }, [{ op: "move", from: "/b", path: "/a/b" }], "depth"],
  ])("%s", (_what, before, patch, expected) => {
    const log = new PatchedDocument(before, bounds);
    const result = log.apply(patch);
    if (expected === "applied") expect(result.is).toBe(expected);
    else {
      expect(result).toEqual({ is: "exceeds", bound: expected, most: bounds[expected as keyof typeof bounds] });
      expect(log.root).toEqual(before);
    }
  });

  test("22 copies that each double the document end before they cost anything", () => {
    const bomb = Array.from({ length: 22 }, (_, n) => ({ op: "copy", from: "", path: `/${n}` }));
    expect(patched({ text: "x".repeat(100) }, bomb)).toMatchObject({ is: "exceeds", bound: "copied" });
  });

  test("a document doubled again and again stays below its largest size, in the log as in a tab", () => {
    const log = new PatchedDocument({ list: [{ text: "x".repeat(100_000) }] });
    let tab = log.root;
    const double = (n: number) => [{ op: "copy", from: "/list", path: `/list/${n % 2}` }];
    let ended: unknown;
    for (let n = 0; ended === undefined && n < 100; n++) {
      // What is replaced and removed makes room.
      for (const patch of [
        double(n),
        [{ op: "add", path: "/text", value: "y".repeat(500_000) }],
        [{ op: "replace", path: "/text", value: "y" }],
        [{ op: "remove", path: "/text" }],
      ]) {
        const inTab = patched(tab, patch);
        tab = inTab.document;
        expect(log.apply(patch)).toEqual((({ document: _document, ...result }) => result)(inTab));
        if (inTab.is !== "applied") ended = inTab;
      }
    }
    expect(ended).toMatchObject({ is: "exceeds", bound: "copied" });
    expect(JSON.stringify(tab).length).toBeLessThan(MAX_COPIED_DOCUMENT);
  });

  test("a document never gets deeper than it may, however it is moved about", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), (patches) => {
        const log = new PatchedDocument({ a: nested(3), list: [nested(2)] }, { ...PATCH_BOUNDS, depth: 6 });
        for (const patch of patches) log.apply([patch]);
        let depth = 0;
        for (let level = [log.root]; level.length > 0; depth++) {
          level = level.flatMap((value) => (typeof value === "object" && value !== null ? Object.values(value) : []));
        }
        expect(depth - 1).toBeLessThanOrEqual(6);
      }),
      times(300),
    );
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

test("a test that fails looks at no more of the document than it brings (L19)", () => {
  let looks = 0;
  const watched = <T extends object>(target: T): T =>
    new Proxy(target, {
      get: (of, key, self: unknown) => {
        looks++;
        return Reflect.get(of, key, self) as unknown;
      },
    });
  const list = watched(Array.from({ length: 10_000 }, () => 0));
  const fields = watched(Object.fromEntries(list.map((_, n) => [`k${n}`, 0])));
  looks = 0;
  const patchedOne = new PatchedDocument({ list, fields });
  expect(patchedOne.apply([{ op: "test", path: "/list", value: [0] }])).toEqual({ is: "refused" });
  expect(patchedOne.apply([{ op: "test", path: "/fields", value: { k0: 0 } }])).toEqual({ is: "refused" });
  expect(looks).toBeLessThan(20);
});
