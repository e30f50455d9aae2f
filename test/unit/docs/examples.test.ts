import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { appFilesIn } from "../../setup/samples.mjs";
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

const isModule = (code: string): boolean => /^\s*(import|export)\b/m.test(code);

/** Packages that only a demo of its own installs. */
const isInstalled = ({ code }: Example): boolean => !code.includes('from "@copilotkit/');

/** The lines of a component's script, where they stand in its file: markup is compiled when the package is checked. */
function scriptOf(code: string): string {
  const [before = "", script = ""] = code.split(/<script[^>]*>|<\/script>/);
  return `${before.replaceAll(/[^\n]/g, "")}${script}`;
}

/** An example as a file for the compiler: its name, and what is in it. */
function fileOf({ page, code, lang = "ts" }: Example, n: number): readonly [name: string, content: string] {
  // An example that names its file is imported by that name from the examples of its page.
  const named = [...appFilesIn(pages.get(page) ?? "")].find(([, it]) => it === code)?.[0].replace("src/", "");
  const name = named ?? /^\/\/ (?:src|app)\/([\w.-]+\.ts)\b/.exec(code)?.[1] ?? `example-${n}.${lang}`;
  if (lang === "vue") return [`${name}.ts`, `${scriptOf(code)}\nexport default {} as import("vue").Component;`];
  if (lang === "svelte") return [`${name}.ts`, scriptOf(code)];
  return [name, isModule(code) ? code : `${code}\nexport {};`];
}

const pages: ReadonlyMap<string, string> = new Map(PAGES.map((path) => [path, pageOf(path).text]));

/** What samples import that have the README's worker file and connection. */
const CONNECT = appFilesIn(pages.get("README.md")!).get("src/connect.ts")!;

/** What the compiler says of examples, with the page and the line where each stands. */
function errorsIn(examples: readonly Example[]): string[] {
  const dir = mkdtempSync(join(folder, "run-"));
  const exampleAt = new Map<string, Example>();
  for (const [n, example] of examples.entries()) {
    const folderOfPage = join(dir, example.page.replaceAll("/", "-"));
    const [name, content] = fileOf(example, n);
    const path = join(folderOfPage, name);
    if (!existsSync(folderOfPage)) {
      mkdirSync(folderOfPage);
      writeFileSync(join(folderOfPage, "connect.ts"), CONNECT);
    }
    writeFileSync(path, content);
    exampleAt.set(path.slice(dir.length + 1).replaceAll("\\", "/"), example);
  }
  writeFileSync(join(dir, "given.d.ts"), GIVEN);
  const config = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
    files: ["given.d.ts", ...exampleAt.keys()],
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
      const example = exampleAt.get(path.replaceAll("\\", "/"));
      return example ? `${example.page}:${example.line + Number(at) - 1}: ${message}` : line;
    });
}

const examples = PAGES.flatMap((path) => examplesOf(pageOf(path))).filter(isInstalled);

const TAG = '<script lang="ts">\nimport { connect } from "./connect";\nconnect(1);\n</script>\n\n<p>Hello</p>';
/** Examples that do not compile, each on a page of its own. */
const WRONG: Readonly<Record<string, Example>> = {
  "demo/guides/x.md": { page: "demo/guides/x.md", line: 7, code: "const a = 1;\nruntime.nothingOfThisName(a);" },
  "demo/guides/vue.md": { page: "demo/guides/vue.md", line: 7, code: TAG, lang: "vue" },
  "demo/guides/svelte.md": { page: "demo/guides/svelte.md", line: 7, code: TAG, lang: "svelte" },
};

describe("examples, compiled at once", () => {
  let errors: readonly string[];
  const errorsOn = (page: string): readonly string[] => errors.filter((error) => error.startsWith(`${page}:`));

  beforeAll(() => {
    errors = errorsIn([...examples, ...Object.values(WRONG)]);
  });

  test("the TypeScript in documents compiles", () => {
    expect(examples.length).toBeGreaterThan(20);
    const known = new Set(Object.keys(WRONG).flatMap(errorsOn));
    expect(errors.filter((error) => !known.has(error))).toEqual([]);
  });

  test("an example that does not compile is told with its page and line", () => {
    expect(errorsOn("demo/guides/x.md")).toEqual([expect.stringMatching(/md:8: error TS2339/)]);
  });

  test.each(["vue", "svelte"])("so is one in a %s component", (lang) => {
    expect(errorsOn(`demo/guides/${lang}.md`)).toEqual([expect.stringMatching(/md:9: error TS2554/)]);
  });
});
