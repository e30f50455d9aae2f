import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GIVEN } from "./given.js";
import { examplesOf, PAGES, pageOf, ROOT, type Example } from "./pages.js";

let folder: string;

beforeAll(() => {
  const cache = join(ROOT, "node_modules/.cache/ag-ui-local-runtime");
  mkdirSync(cache, { recursive: true });
  // Below the project, so that imports find its packages.
  folder = mkdtempSync(join(cache, "examples-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const isModule = (code: string): boolean => /^(import|export)\b/m.test(code);

/** What the compiler says of examples, with the page and the line where each stands. */
function errorsIn(examples: readonly Example[]): string[] {
  const dir = mkdtempSync(join(folder, "run-"));
  const fileOf = new Map<string, Example>();
  for (const [n, example] of examples.entries()) {
    // An example that names its file is imported by that name from the examples of its page.
    const named = /^\/\/ (?:src|app)\/([\w.-]+)\.ts\b/.exec(example.code)?.[1];
    const page = example.page.replaceAll("/", "-");
    const path = join(dir, page, `${named ?? `example-${n}`}.ts`);
    mkdirSync(join(dir, page), { recursive: true });
    writeFileSync(path, isModule(example.code) ? example.code : `${example.code}\nexport {};`);
    fileOf.set(path.slice(dir.length + 1).replaceAll("\\", "/"), example);
  }
  writeFileSync(join(dir, "given.d.ts"), GIVEN);
  const config = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
    files: ["given.d.ts", ...fileOf.keys()],
    include: [],
  };
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", dir], { cwd: dir, encoding: "utf8" });
  return stdout
    .split("\n")
    .filter((line) => /error TS\d+/.test(line))
    .map((line) => {
      const [, path = "", at = "0", message = line] = /^(.+?)\((\d+),\d+\): (.*)$/.exec(line) ?? [];
      const example = fileOf.get(path.replaceAll("\\", "/"));
      return example ? `${example.page}:${example.line + Number(at) - 1}: ${message}` : line;
    });
}

test("the TypeScript in documents compiles", () => {
  const examples = PAGES.flatMap((path) => examplesOf(pageOf(path)));
  expect(examples.length).toBeGreaterThan(20);
  expect(errorsIn(examples)).toEqual([]);
});

test("an example that does not compile is told with its page and line", () => {
  const wrong = { page: "demo/guides/x.md", line: 7, code: "const a = 1;\nruntime.nothingOfThisName(a);" };
  expect(errorsIn([wrong])).toEqual([expect.stringMatching(/^demo\/guides\/x\.md:8: error TS2339/)]);
});
