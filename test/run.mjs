// `npm test`: installs what is missing, finds or gets the browsers and nats-server, runs the suites one after another, counts.
// The gate runs two that leave most of two cores idle beside those in Node. Suites of several tabs run alone.
//   npm test                    the gate: what every change has to pass (test/setup/gate.mjs)
//   npm run test:all            everything
//   npm test -- unit chromium   these suites, whole; with --gate what the gate has of them
//   npm test -- --list          their names
//   npm test -- chromium firefox webkit --write-table    writes the table of faults in demo/guides/guarantees.md
// With CI=true every browser and nats-server must be there.
import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { BROWSERS, obtainBrowser } from "./setup/browsers.mjs";
import { GATE_FACTOR, GATE_SEED, gateFiles } from "./setup/gate.mjs";
import { faultTable, staleTable, writeTable } from "./setup/fault-table.mjs";
import { install, requireNode, ROOT } from "./setup/install.mjs";
import { obtainNats } from "./setup/nats.mjs";
import { isAlive, killTree } from "./setup/processes.mjs";

const MINUTE = 60_000;
const bin = (path) => [process.execPath, join(ROOT, "node_modules", path)];

/** The beginning of what a failure says; all of it stands where it happened. */
const indented = (text) => text.split("\n").slice(0, 12).join("\n").replaceAll(/^/gm, "    ");

/** A command that counts as one test. */
const single = (...command) => ({ command });
/** Vitest projects write what they counted. */
const vitest = (project) => (report) => ({
  command: [
    ...bin("vitest/vitest.mjs"),
    "run",
    `--project=${project}`,
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
    ...((isGate && gateFiles(project)) || []),
  ],
  count: ({ numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults }) => ({
    passed: numPassedTests,
    failed: numFailedTests,
    skipped: numPendingTests + numTodoTests,
    failures: testResults.flatMap(({ name, status, message, assertionResults }) => {
      const failures = assertionResults
        .filter((it) => it.status === "failed")
        .map((it) => `${it.fullName}\n${indented(it.failureMessages.join("\n"))}`);
      if (failures.length === 0 && status === "failed") failures.push(indented(message));
      return failures.map((failure) => `${relative(ROOT, name)}: ${failure}`);
    }),
  }),
});

/** Folders whose types need packages that the ordinary check does not have, and where else they take packages from. */
const OWN_TYPES = [
  ["demo/frameworks"],
  ["demo/assistant-ui"],
  ["demo/copilotkit"],
  ["test/bench/renders", "demo/copilotkit"],
];

/**
 * In this order. `limit` is where a suite that hangs is ended: far from what the slowest machine needs. Those that are `beside`
 * wait most of the time, or are one page: the gate runs them, one after the other, while the suites in Node run.
 */
const SUITES = [
  {
    name: "check",
    says: "types, lint, format",
    limit: 20 * MINUTE,
    steps: [
      single(...bin("typescript/bin/tsc"), "-p", "tsconfig.json"),
      single("npm", "run", "--silent", "lint"),
      single(...bin("prettier/bin/prettier.cjs"), "--check", "."),
    ],
  },
  { name: "unit", says: "logic, in Node", limit: 60 * MINUTE, steps: [vitest("unit*")] },
  {
    name: "sync",
    says: "devices in step over real NATS servers, in Node",
    limit: 30 * MINUTE,
    program: "nats-server",
    beside: true,
    steps: [vitest("sync")],
  },
  {
    name: "browser",
    says: "real IndexedDB, in Chromium",
    limit: 60 * MINUTE,
    browser: "chromium",
    beside: true,
    steps: [vitest("browser")],
  },
  {
    name: "package",
    says: "what is published: build, exports, types, sizes, API reference",
    limit: 30 * MINUTE,
    stopAtFailure: true,
    steps: [
      single("npm", "run", "--silent", "build"),
      // Every warning is an error: public names without a doc comment, links that lead nowhere, types that are not exported.
      single("npm", "run", "--silent", "reference", "--", "--emit", "none"),
      (report) => ({
        command: [process.execPath, join(ROOT, "test/package/check.mjs"), `--report=${report}`],
        count: (it) => it,
      }),
    ],
  },
  {
    name: "copilotkit",
    says: "CopilotKit's runtime and client, with what is here, over HTTP",
    limit: 30 * MINUTE,
    // It installs 500 MB.
    outsideGate: true,
    steps: [vitest("copilotkit")],
  },
  {
    name: "frontends-types",
    says: "types of the examples of front ends, and of what the bench has of them",
    limit: 30 * MINUTE,
    // It installs the front ends.
    outsideGate: true,
    steps: OWN_TYPES.map((folders) => single(process.execPath, join(ROOT, "test/setup/own-types.mjs"), ...folders)),
  },
  ...["chromium", "firefox"].map((browser) => ({
    name: `frontends-${browser}`,
    says: `the examples of front ends, built, in ${BROWSERS[browser].title}`,
    limit: 30 * MINUTE,
    browser,
    // They install the front ends.
    outsideGate: true,
    steps: [vitest(`frontends-${browser}`)],
  })),
  {
    name: "chromium",
    says: "several tabs, in Chromium",
    limit: 120 * MINUTE,
    browser: "chromium",
    steps: [vitest("chromium")],
  },
  {
    name: "firefox",
    says: "several tabs, in Firefox",
    limit: 120 * MINUTE,
    browser: "firefox",
    steps: [vitest("firefox")],
  },
  {
    name: "webkit",
    says: "several tabs, in WebKitGTK",
    limit: 30 * MINUTE,
    browser: "webkit",
    steps: [vitest("webkit")],
  },
];

/** Names of suites from the command line; nothing named means every suite. */
function chosenSuites(args) {
  if (args.includes("--list")) {
    for (const { name, says } of SUITES) console.log(`${name.padEnd(20)}${says}`);
    process.exit(0);
  }
  const unknown = args.filter((arg) => !SUITES.some(({ name }) => name === arg));
  if (unknown.length > 0) {
    console.error(`no such suite: ${unknown.join(", ")} (there are ${SUITES.map(({ name }) => name).join(", ")})`);
    process.exit(1);
  }
  if (args.length > 0) return SUITES.filter(({ name }) => args.includes(name));
  return isGate ? SUITES.filter(({ outsideGate }) => !outsideGate) : SUITES;
}

const running = new Set();

/** Runs a command with its output passed through, or into a file. False where it failed or was ended at the deadline. */
async function passes([program, ...args], deadline, output = "inherit") {
  const shell = process.platform === "win32" && program === "npm";
  const child = spawn(program, args, { cwd: ROOT, stdio: ["ignore", output, output], env: process.env, shell });
  running.add(child);
  const limit = setTimeout(
    () => {
      console.error(`\nended: it took longer than it may`);
      killTree(child.pid);
    },
    Math.max(0, deadline - Date.now()),
  );
  try {
    return await new Promise((resolve) => {
      child.once("error", (error) => {
        console.error(error.message);
        resolve(false);
      });
      child.once("exit", (code) => resolve(code === 0));
    });
  } finally {
    clearTimeout(limit);
    running.delete(child);
  }
}

/** Runs a suite's steps, adds up what they counted and gathers what failed. */
async function runSuite({ name, limit, steps, stopAtFailure }, folder, output) {
  const deadline = Date.now() + limit;
  const total = { passed: 0, failed: 0, skipped: 0 };
  const failures = [];
  for (const [index, given] of steps.entries()) {
    const report = join(folder, `${name}-${index}.json`);
    const { command, count } = typeof given === "function" ? given(report) : given;
    const passed = await passes(command, deadline, output);
    let counted = { passed: passed ? 1 : 0, failed: passed ? 0 : 1, skipped: 0 };
    if (count) {
      try {
        counted = count(JSON.parse(readFileSync(report, "utf8")));
      } catch {
        counted = { passed: 0, failed: 1, skipped: 0 };
      }
    }
    // A suite can fail beside its tests: an unhandled error, no file found, the limit.
    if (!passed && counted.failed === 0) counted.failed = 1;
    for (const key of Object.keys(total)) total[key] += counted[key];
    if (!passed) failures.push(...(counted.failures?.length ? counted.failures : [`${command.slice(1).join(" ")}`]));
    if (!passed && stopAtFailure) break;
  }
  return { ...total, failures };
}

/**
 * Obtains the browsers and programs that the suites need; the paths of browsers become variables of the environment.
 * @returns sentences for those not to be had
 */
async function prepare(suites) {
  const missing = new Map();
  for (const name of new Set(suites.flatMap(({ browser }) => browser ?? []))) {
    const found = await obtainBrowser(name);
    if (found.path) {
      process.env[BROWSERS[name].variable] = found.path;
      console.log(`${BROWSERS[name].title}: ${found.path}`);
    } else {
      missing.set(name, found.missing);
    }
  }
  if (suites.some(({ program }) => program === "nats-server")) {
    const found = obtainNats();
    if (found.path) console.log(`nats-server: ${found.path}`);
    else missing.set("nats-server", found.missing);
  }
  return missing;
}

async function timed({ name }, run) {
  const start = Date.now();
  const counts = await run();
  return { name, ...counts, seconds: (Date.now() - start) / 1000 };
}

/** Runs suites one after the other. @returns what each printed, and its result */
async function runBeside(suites, folder) {
  const done = [];
  for (const suite of suites) {
    const path = join(folder, `${suite.name}.txt`);
    const file = openSync(path, "w");
    const result = await timed(suite, () => runSuite(suite, folder, file));
    closeSync(file);
    done.push({ suite, result, printed: readFileSync(path) });
  }
  return done;
}

/** @param took in seconds: some ran at once */
function printSummary(results, took) {
  for (const { name, failures = [] } of results) {
    for (const failure of failures) console.log(`\nfailed in ${name}: ${failure}`);
  }
  const cell = (value, width) => String(value).padStart(width);
  console.log(`\n${"suite".padEnd(20)}${["passed", "failed", "skipped", "seconds"].map((it) => cell(it, 9)).join("")}`);
  for (const { name, passed, failed, skipped, seconds, why } of results) {
    const counts = [passed, failed, skipped, seconds.toFixed(1)].map((it) => cell(it, 9)).join("");
    console.log(`${name.padEnd(20)}${counts}${why ? `  ${why}` : ""}`);
  }
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  console.log(`${"all".padEnd(20)}${cell(`${Math.floor(took / 60)} min ${Math.round(took % 60)} s`, 36)}\n`);
  const skipped = sum("skipped");
  console.log(`${sum("passed")} passed, ${sum("failed")} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
  return sum("failed");
}

/** Where all engines ran without a failure: the table of faults says what they showed. */
function checkTable() {
  if (isGate) return [];
  const engines = ["chromium", "firefox", "webkit"];
  const ran = engines.map((engine) => results.find(({ name }) => name === engine));
  if (!ran.every((result) => result?.failed === 0 && result.passed > 0)) return [];
  const reports = engines.map((engine) => [engine, JSON.parse(readFileSync(join(folder, `${engine}-0.json`), "utf8"))]);
  const table = faultTable(Object.fromEntries(reports));
  if (writesTable) writeTable(table);
  const why = staleTable(table);
  return [{ name: "table", passed: why ? 0 : 1, failed: why ? 1 : 0, skipped: 0, seconds: 0, why }];
}

function endRunning() {
  for (const { pid } of running) if (isAlive(pid)) killTree(pid);
}

requireNode();
const OPTIONS = ["--all", "--gate", "--write-table"];
const [all, gate, writesTable] = OPTIONS.map((option) => process.argv.includes(option));
const names = process.argv.slice(2).filter((arg) => !OPTIONS.includes(arg));
const isGate = gate || (names.length === 0 && !all);
const suites = chosenSuites(names);
if (isGate) {
  process.env.TEST_GATE = "true";
  process.env.PROPERTY_FACTOR ??= String(GATE_FACTOR);
  process.env.PROPERTY_SEED ??= String(GATE_SEED);
}
for (const [name, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
]) {
  process.once(name, () => {
    endRunning();
    process.exit(code);
  });
}
install();
const missing = await prepare(suites);
if (missing.size > 0 && process.env.CI === "true") {
  for (const sentence of missing.values()) console.error(`${sentence} (with CI=true none may be missing)`);
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "agui-test-"));
const start = Date.now();
const results = [];
try {
  const isThere = ({ browser, program }) => !missing.has(browser ?? program);
  const besides = isGate && suites.length > 1 ? suites.filter((suite) => suite.beside && isThere(suite)) : [];
  if (besides.length > 0) console.log(`beside the others: ${besides.map(({ name }) => name).join(", ")}`);
  const whenBeside = runBeside(besides, folder);
  const endBeside = async () => {
    for (const { suite, result, printed } of (await whenBeside).splice(0)) {
      console.log(`\n=== ${suite.name}: ${suite.says} (it ran beside the others)`);
      process.stdout.write(printed);
      results.push(result);
    }
  };
  for (const suite of suites) {
    if (besides.includes(suite)) continue;
    if (suite.browser) await endBeside();
    const why = missing.get(suite.browser ?? suite.program);
    console.log(`\n=== ${suite.name}: ${suite.says}${why ? `: skipped. ${why}` : ""}`);
    results.push(
      why
        ? { name: suite.name, passed: 0, failed: 0, skipped: 1, seconds: 0, why }
        : await timed(suite, () => runSuite(suite, folder)),
    );
  }
  await endBeside();
  results.push(...checkTable());
} finally {
  endRunning();
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = printSummary(results, (Date.now() - start) / 1000) > 0 ? 1 : 0;
