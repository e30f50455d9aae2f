import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parseSync } from "vite";
import { FAULTS } from "../setup/fault-table.mjs";
import { gateFiles, LEFT_OUT } from "../setup/gate.mjs";

const SRC = fileURLToPath(new URL("../../src", import.meta.url));

/**
 * The floors of the layout: a file imports from its own place or from a lower floor. Its place is the longest of these
 * that its path begins with, so the folders of a room can have floors of their own between those of two rooms.
 */
const FLOORS: Readonly<Record<string, number>> = {
  platform: 0,
  run: 1,
  storage: 2,
  wire: 2,
  lock: 3,
  "runner/checks.ts": 3.1,
  "runner/request.ts": 3.1,
  "runner/agent": 3.2,
  "runner/parts.ts": 3.3,
  "runner/history": 3.4,
  "runner/claim": 3.5,
  "runner/live": 3.6,
  "runner/read": 3.7,
  "runner/keep": 3.7,
  runner: 4,
  sync: 4.5,
  runtime: 5,
  checkpoint: 5,
  worker: 6,
  client: 6,
  "service-worker": 6,
  encryption: 6,
  langgraph: 6,
  ai: 6,
  conformance: 6,
  inspector: 7,
  react: 7,
  vue: 7,
  svelte: 7,
  copilotkit: 8,
};

/**
 * The most lines that a room may have, comments and all: a little above what it has. What is added to a room that is full
 * takes the place of something, or says here why it does not.
 */
const LINES: Readonly<Record<string, number>> = {
  // The file of the entry.
  "": 50,
  platform: 1_050,
  run: 5_200,
  storage: 8_200,
  wire: 2_200,
  lock: 300,
  runner: 8_500,
  sync: 9_600,
  runtime: 7_800,
  checkpoint: 1_500,
  worker: 900,
  client: 6_450,
  "service-worker": 350,
  encryption: 20,
  langgraph: 1_400,
  ai: 2_500,
  conformance: 3_600,
  react: 300,
  vue: 180,
  svelte: 120,
  copilotkit: 1_200,
};
/** What is longer is two files. */
const LINES_OF_A_FILE = 600;

/** Which files a file imports: paths below `src`, with `/`. */
type Graph = Readonly<Record<string, readonly string[]>>;

/** Files directly in `src` stand above all rooms. */
function roomOf(file: string): string {
  return file.includes("/") ? file.slice(0, file.indexOf("/")) : "";
}

/** The longest of {@link FLOORS} that the file stands in; its room where there is none. */
function placeOf(file: string): string {
  const places = Object.keys(FLOORS).filter((place) => file === place || file.startsWith(`${place}/`));
  return places.reduce((longest, place) => (place.length > longest.length ? place : longest), roomOf(file));
}

function floorOf(file: string): number {
  return roomOf(file) === "" ? Number.POSITIVE_INFINITY : (FLOORS[placeOf(file)] ?? Number.NaN);
}

/** One sentence for each import that the layout forbids. */
function violations(graph: Graph): string[] {
  return Object.entries(graph).flatMap(([file, imports]) => [
    ...(Number.isNaN(floorOf(file)) ? [`${file}: "${roomOf(file)}" is no room of the layout`] : []),
    ...imports.flatMap((imported) => {
      if (graph[imported] === undefined) return [`${file} imports ${imported}, which is not there`];
      if (roomOf(imported) === "") return [`${file} imports the entry file ${imported}`];
      if (placeOf(imported) === placeOf(file) || floorOf(imported) < floorOf(file)) return [];
      return [`${file} (floor ${floorOf(file)}) imports ${imported} (floor ${floorOf(imported)})`];
    }),
  ]);
}

/** The circles of the graph, each as the files on it. */
function circles(graph: Graph): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) found.push([...path.slice(start), file].join(" → "));
    if (start >= 0 || done.has(file)) return;
    for (const imported of graph[file] ?? []) visit(imported, [...path, file]);
    done.add(file);
  };
  for (const file of Object.keys(graph)) visit(file, []);
  return found;
}

/** All that a module names in imports, exports from, dynamic imports, `import("…")` types and `new URL("…")`. */
function specifiers(name: string, code: string): string[] {
  const { program, errors } = parseSync(name, code);
  if (errors.length > 0) throw new Error(`${name}: ${errors[0]?.message}`);
  const found: string[] = [];
  const text = (node: unknown): string | undefined => {
    const { type, value } = (node ?? {}) as { type?: string; value?: unknown };
    return type === "Literal" && typeof value === "string" ? value : undefined;
  };
  const walk = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) {
      for (const item of node) walk(item);
      return;
    }
    const { type, source, arguments: given, callee } = node as Record<string, unknown>;
    if (typeof type === "string" && /^(Import|Export.*Declaration|ImportExpression|TSImportType)/.test(type)) {
      const named = text(source);
      if (named !== undefined) found.push(named);
    }
    if (type === "NewExpression" && (callee as { name?: string }).name === "URL" && Array.isArray(given)) {
      const named = text(given[0]);
      if (named?.startsWith(".")) found.push(named);
    }
    for (const child of Object.values(node)) walk(child);
  };
  walk(program);
  return found;
}

/** The graph of the sources; packages are left out. */
function graphOf(root: string): Graph {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const slashes = (path: string): string => path.split(sep).join("/");
  return Object.fromEntries(
    files.map((file) => {
      const imports = specifiers(file, readFileSync(join(root, file), "utf8"))
        .filter((specifier) => specifier.startsWith("."))
        .map((specifier) => resolve(root, dirname(file), specifier.replace(/\.js$/, ".ts")));
      return [slashes(file), imports.map((path) => slashes(relative(root, path)))];
    }),
  );
}

describe("the sources", () => {
  const graph = graphOf(SRC);

  test("import only from their own room and lower floors", () => {
    expect(violations(graph)).toEqual([]);
  });

  test("import in no circle", () => {
    expect(circles(graph)).toEqual([]);
  });

  test("stay within their budgets of lines", () => {
    const lines: Record<string, number> = {};
    const files = Object.keys(graph).map((file) => {
      const count = readFileSync(join(SRC, file), "utf8").split("\n").length - 1;
      lines[roomOf(file)] = (lines[roomOf(file)] ?? 0) + count;
      return { file, count };
    });
    expect(files.filter(({ count }) => count > LINES_OF_A_FILE)).toEqual([]);
    expect(Object.entries(lines).filter(([room, count]) => !(count <= LINES[room]!))).toEqual([]);
  });

  test("are all seen by this test", () => {
    expect(Object.keys(graph)).toEqual(expect.arrayContaining(["index.ts", "client/index.ts", "worker/index.ts"]));
  });
});

describe("the checker", () => {
  test("takes what is below and beside", () => {
    const graph = {
      "index.ts": ["client/index.ts", "run/a.ts"],
      "client/index.ts": ["client/b.ts"],
      "client/b.ts": ["wire/c.ts"],
      "wire/c.ts": ["run/a.ts"],
      "run/a.ts": [],
    };
    expect(violations(graph)).toEqual([]);
    expect(circles(graph)).toEqual([]);
  });

  test.each([
    ["an import upward", { "run/a.ts": ["runner/b.ts"], "runner/b.ts": [] }],
    ["an import upward within a room", { "runner/claim/a.ts": ["runner/live/b.ts"], "runner/live/b.ts": [] }],
    ["rooms of one floor", { "worker/a.ts": ["client/b.ts"], "client/b.ts": [] }],
    ["the entry file", { "client/a.ts": ["index.ts"], "index.ts": [] }],
    ["an unknown room", { "helpers/a.ts": [] }],
    ["a file that is not there", { "client/a.ts": ["client/gone.ts"] }],
  ])("finds %s", (_, graph: Graph) => {
    expect(violations(graph)).toHaveLength(1);
  });

  test("finds a circle", () => {
    expect(circles({ "run/a.ts": ["run/b.ts"], "run/b.ts": ["run/c.ts"], "run/c.ts": ["run/b.ts"] })).toEqual([
      "run/b.ts → run/c.ts → run/b.ts",
    ]);
  });

  test("sees every form of import", () => {
    const code = `
      import { a } from "./a.js";
      import type { B } from "./b.js";
      import "./c.js";
      export * from "./d.js";
      export { e } from "./e.js";
      export type { F } from "./f.js";
      const g = () => import("./g.js");
      let h: import("./h.js").H;
      new Worker(new URL("./i.ts", import.meta.url));
      // import "./not.js"
    `;
    const names = specifiers("x.ts", code).map((specifier) => specifier.slice(2, 3));
    expect(names.toSorted().join("")).toBe("abcdefghi");
  });
});

test("the table of faults knows what each file of test/tabs is about", () => {
  const files = readdirSync(fileURLToPath(new URL("../tabs", import.meta.url)));
  const tests = files.filter((name) => name.endsWith(".test.ts")).map((name) => name.slice(0, -".test.ts".length));
  // test/setup/fault-table.mjs: without it, `npm run test:all` ends in an error after everything has run.
  expect(tests.filter((name) => !(name in FAULTS))).toEqual([]);
});

test("what the gate runs is there", () => {
  const root = new URL("../../", import.meta.url);
  for (const project of ["chromium", "firefox"]) {
    for (const path of gateFiles(project) ?? LEFT_OUT) expect(existsSync(new URL(path, root)), path).toBe(true);
  }
  expect(gateFiles("chromium")).toContain("test/tabs/smoke.test.ts");
});
