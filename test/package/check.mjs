// What npm would publish, looked at as its users get it. Run `npm run build` before.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { build } from "vite";
import { npm, ROOT } from "../setup/install.mjs";
import { buildApps } from "./apps.mjs";
import { BUDGETS, measure } from "./sizes.mjs";

const { values } = parseArgs({ options: { report: { type: "string" } } });
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const entries = Object.keys(manifest.exports).filter((name) => name !== "./package.json");
const folder = mkdtempSync(join(tmpdir(), "agui-package-"));

/** The tarball, and what is in it. */
function pack() {
  const { stdout, stderr, status } = npm(
    ["pack", "--json", "--ignore-scripts", "--silent", `--pack-destination=${folder}`],
    {
      stdio: "pipe",
      encoding: "utf8",
    },
  );
  if (status !== 0) throw new Error(`npm pack: ${stderr}`);
  const answer = JSON.parse(stdout);
  const [{ filename, files }] = Array.isArray(answer) ? answer : Object.values(answer);
  return { path: join(folder, filename), files: files.map(({ path }) => path) };
}

/** A project that has the package installed, beside what it needs. */
function consumerOf(tarball) {
  const project = join(folder, "consumer");
  const home = join(project, "node_modules", manifest.name);
  mkdirSync(home, { recursive: true });
  execFileSync("tar", ["-xzf", tarball, "-C", home, "--strip-components=1"]);
  // The copy of the client that a front end may bring; what the app of the README has besides.
  const others = ["ag-ui-client-0", "@types/react", "@types/react-dom", "react-dom"];
  for (const name of [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies), ...others]) {
    const link = join(project, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), link, "junction");
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", type: "module" }));
  writeFileSync(
    join(project, "page.ts"),
    `import type { AbstractAgent } from "@ag-ui/client";
import type { AbstractAgent as OldAgent } from "ag-ui-client-0";
import { connectRuntime, LocalAgent, RunnerError, type RuntimeConnection } from "${manifest.name}/client";
export const runtime: RuntimeConnection = connectRuntime({
  hosts: { dedicated: () => new Worker(new URL("./worker.js", import.meta.url), { type: "module" }) },
});
export const agent: LocalAgent = runtime.agent("echo", { threadId: "thread" });
export const current: AbstractAgent = agent;
export const old: OldAgent = runtime.agent("echo");
export const messages: string[] = agent.messages.map(({ id }) => id);
export const isBusy = (error: unknown): boolean => RunnerError.is(error, "thread-busy");
// @ts-expect-error the types must be there, not any
runtime.nothingOfThisName();
`,
  );
  writeFileSync(
    join(project, "front-ends.ts"),
    `import { createElement } from "react";
import type { AbstractAgent as OldAgent } from "ag-ui-client-0";
import { RuntimeProvider, useThread } from "${manifest.name}/react";
import { useCopilotKitAgents } from "${manifest.name}/copilotkit";
import { thread } from "${manifest.name}/svelte";
import { useThread as useVueThread } from "${manifest.name}/vue";
import { runtime } from "./page.js";
export const Chat = () => useThread("t", { agentId: "echo" }).messages.length;
export const app = createElement(RuntimeProvider, { runtime }, createElement(Chat));
export const send = (): Promise<string> => useVueThread("t", { agentId: "echo" }).value.send("hello");
export const readable = (): (() => void) => thread("t", { agentId: "echo" }).subscribe(({ run }) => run.is === "idle");
export const agents: Readonly<Record<string, OldAgent>> = useCopilotKitAgents(["echo"]);
// @ts-expect-error the types must be there, not any
useThread("t", { agentId: "echo" }).nothingOfThisName();
`,
  );
  writeFileSync(
    join(project, "worker.ts"),
    `import { IndexedDBAgentRunner, type AgentRunner } from "${manifest.name}";
import { aiAgent, aiTool } from "${manifest.name}/ai";
import { IndexedDBSaver } from "${manifest.name}/langgraph";
import { IndexedDBCheckpointStore, type CheckpointStore } from "${manifest.name}/checkpoint";
import { defineAgent, serveRuntime } from "${manifest.name}/worker";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
serveRuntime({ agents: { echo: defineAgent(async function* (input, { signal }) { signal.throwIfAborted(); void input.threadId; }) } });
export const model = aiAgent({ model: () => Promise.reject(new Error("none")), tools: { now: aiTool({ parameters: {}, execute: () => Date.now() }) } });
export const saver: BaseCheckpointSaver = new IndexedDBSaver({ dbName: "consumer" });
export const runner: AgentRunner = new IndexedDBAgentRunner({ dbName: "consumer" });
export const checkpoints: CheckpointStore = new IndexedDBCheckpointStore({ dbName: "consumer" });
`,
  );
  return project;
}

function fail(lines) {
  if (lines.length > 0) throw new Error(lines.join("\n"));
}

/** Errors in the project and in the package; those in the declarations of others are theirs. */
function typeErrors(project, options) {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const { stdout } = spawnSync(
    process.execPath,
    [
      tsc,
      "--noEmit",
      "--strict",
      "--target",
      "es2022",
      "--lib",
      "es2024,dom",
      "--types",
      "",
      ...options,
      "page.ts",
      "front-ends.ts",
      "worker.ts",
    ],
    { cwd: project, encoding: "utf8" },
  );
  const foreign = /^(?!node_modules\/ag-ui-local-runtime\/).*node_modules\//;
  return stdout.split("\n").filter((line) => /error TS\d+/.test(line) && !foreign.test(line));
}

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`.padStart(10);

let tarball;
let project;
const checks = {
  "npm pack holds dist and documents only": () => {
    tarball = pack();
    const code = /^(dist\/.*\.(js|d\.ts)|package\.json)$/;
    const documents =
      /^(README\.md|CHANGELOG\.md|LICENSE|\.github\/SECURITY\.md|demo\/(guides\/.*\.md|recipes\/.*\.ts))$/;
    fail(tarball.files.filter((path) => !code.test(path) && !documents.test(path)));
    project = consumerOf(tarball.path);
  },
  "every link of the README leads to a file of the package": () => {
    const text = readFileSync(join(project, "node_modules", manifest.name, "README.md"), "utf8");
    const paths = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, path]) => path);
    fail(paths.filter((path) => !tarball.files.includes(path)));
    if (paths.length < 20) fail(["too few links were found"]);
  },
  "declarations name no internals of a runner": () => {
    const internal = /\b(RunStore|RunnerParts|RunnerPreset|LiveRunContext)\b/;
    const declarations = tarball.files.filter((path) => path.endsWith(".d.ts"));
    const home = join(project, "node_modules", manifest.name);
    fail(declarations.filter((path) => internal.test(readFileSync(join(home, path), "utf8"))));
  },
  "publint finds nothing": async () => {
    const { messages, pkg } = await publint({
      pkgDir: join(project, "node_modules", manifest.name),
      strict: true,
      pack: false,
    });
    fail(messages.map((message) => formatMessage(message, pkg, { color: false }) ?? message.code));
  },
  "are the types wrong? No (ESM only)": () => {
    const cli = join(ROOT, "node_modules/@arethetypeswrong/cli/dist/index.js");
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      [cli, tarball.path, "--profile", "esm-only", "--no-color", "--no-emoji"],
      { encoding: "utf8" },
    );
    if (status !== 0) fail([stdout + stderr]);
  },
  "a strict project compiles with it (bundler)": () =>
    fail(typeErrors(project, ["--module", "esnext", "--moduleResolution", "bundler"])),
  "a strict project compiles with it (nodenext)": () => fail(typeErrors(project, ["--module", "nodenext"])),
  "the apps of the README and the guides compile and build, each with its worker": async () =>
    fail(await buildApps(project, join(project, "node_modules", manifest.name))),
  "every entry can be imported in Node": () => {
    const names = entries.map((name) => manifest.name + name.slice(1));
    const code = names.map((name) => `await import(${JSON.stringify(name)});`).join("\n");
    const { stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
      cwd: project,
      encoding: "utf8",
      timeout: 300_000,
    });
    if (status !== 0) fail([stderr]);
  },
  "a service worker can be built as a script of one file": async () => {
    const entry = join(project, "sw.js");
    writeFileSync(
      entry,
      `import { relayRuntime } from "${manifest.name}/service-worker";\nrelayRuntime({ basePath: "/api" });`,
    );
    const lib = { entry, formats: ["iife"], name: "sw" };
    await build({
      configFile: false,
      logLevel: "silent",
      publicDir: false,
      root: project,
      build: { write: false, lib },
    });
  },
  "every entry is within its budget": async () => {
    const home = join(project, "node_modules", manifest.name);
    const paths = Object.fromEntries(entries.map((name) => [name, join(home, manifest.exports[name].import)]));
    // What an app has that takes one name of an entry, or one more.
    const starts = {
      serveRuntime: [`export { serveRuntime } from "${manifest.name}/worker";`],
      connectRuntime: [`export { connectRuntime } from "${manifest.name}/client";`],
      "connectRuntime, react": [
        `export { connectRuntime } from "${manifest.name}/client";`,
        `export * from "${manifest.name}/react";`,
      ],
    };
    for (const [name, lines] of Object.entries(starts)) {
      paths[name] = join(project, `${name.replaceAll(/\W/g, "")}.js`);
      writeFileSync(paths[name], lines.join("\n"));
    }
    const sizes = await measure(paths, Object.keys(manifest.peerDependencies));
    console.log(
      `\n${"entry".padEnd(24)}${["own min", "gzip", "whole min", "gzip", "files"].map((it) => it.padStart(10)).join("")}`,
    );
    for (const { name, own, whole } of sizes) {
      const bytes = [own.min, own.gzip, whole.min, whole.gzip].map(kilobytes).join("");
      console.log(name.padEnd(24) + bytes + String(whole.files).padStart(10));
    }
    fail(
      sizes.flatMap(({ name, own, whole }) => {
        const { files = Infinity, ...most } = BUDGETS[name] ?? {};
        const has = [
          { what: "own", is: own.gzip, most: most.own, unit: "bytes" },
          { what: "whole", is: whole.gzip, most: most.whole, unit: "bytes" },
          { what: "at the start", is: whole.files, most: files, unit: "files" },
        ];
        return has
          .filter((part) => !(part.is <= part.most))
          .map(({ what, is, most: budget, unit }) => `${name}, ${what}: ${is} ${unit}, budget ${budget} (sizes.mjs)`);
      }),
    );
  },
};

const counts = { passed: 0, failed: 0, skipped: 0 };
try {
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      counts.passed++;
      console.log(`ok      ${name}`);
    } catch (error) {
      counts.failed++;
      console.log(`FAILED  ${name}\n${error.message.replace(/^/gm, "        ")}`);
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (values.report) writeFileSync(values.report, JSON.stringify(counts));
process.exitCode = counts.failed > 0 ? 1 : 0;
