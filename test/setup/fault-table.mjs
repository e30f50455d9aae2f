// The table of faults in demo/guides/guarantees.md: law by law, fault by fault, browser by browser, from what really ran. A run
// of all engines compares it with its own results; `npm test -- chromium firefox webkit --write-table` writes it.
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { ROOT } from "./install.mjs";

/** What the files of test/tabs bring about. Files that are about no fault stand here without a sentence. */
export const FAULTS = {
  runs: "tabs that reload, close and race",
  "many-tabs": "many tabs: one frozen, one closing, one reloading",
  "many-threads": "an agent that blocks its host",
  death: "a host, a tab or the whole browser dies",
  "smoke-death": "a host, a tab or the whole browser dies",
  "failure-points": "a host ends between two steps of a run",
  soak: "random kills, reloads and stops",
  chaos: "random kills, network cuts and a failing model server, while tools run and messages wait",
  stop: "a stolen lock, a frozen or hung holder",
  "coming-going": "tabs that come and go by the hundred",
  hosts: "hosts of two builds and a tab's worker hammer the same threads",
  channel: "a BroadcastChannel that drops, doubles, delays, forges",
  "page-cache": "pages in the back/forward cache",
  quota: "a full disk",
  takeover: "a newer build takes the database, or somebody deletes it",
  storage: "a database of a newer version",
  memory: "no storage at all",
  "no-locks": "no Web Locks (plain http)",
  smoke: "tabs that reload, close and race",
  "server-ends": "a server whose answer breaks off, an agent that fails when it is stopped",
  "hostile-events": "an agent whose events are hostile",
  fetch: undefined,
  sync: "devices in step: a device, a server or the network between them fails",
  servers: "the browser that asked a server for a run is killed; the server leaves",
  users: undefined,
  contract: undefined,
  checkpoints: undefined,
  tools: undefined,
  locked: undefined,
  "tab-model": undefined,
  ai: undefined,
  recovery: undefined,
  waiting: undefined,
  "dev-hot": undefined,
  "dev-reload": undefined,
  presets: undefined,
  recipes: undefined,
};

const ENGINES = { chromium: "Chromium", firefox: "Firefox", webkit: "WebKitGTK" };
const GUIDE = "demo/guides/guarantees.md";
const BEGIN = "<!-- faults: written by npm test -- --write-table -->";
const END = "<!-- end of faults -->";

/** The laws that a test's name says it guards, those of the suites around it included. */
const lawsOf = ({ fullName }) => [...new Set(fullName.match(/\bL\d+\b/g))];

/** @param reports vitest's JSON report of each engine */
export function faultTable(reports) {
  const counts = new Map();
  for (const [engine, { testResults }] of Object.entries(reports)) {
    for (const { name, assertionResults } of testResults) {
      if (!relative(ROOT, name).replaceAll("\\", "/").startsWith("test/tabs/")) continue;
      const file = basename(name).replace(/\.test\.ts$/, "");
      if (!(file in FAULTS)) throw new Error(`test/setup/fault-table.mjs does not say what ${file}.test.ts is about`);
      const fault = FAULTS[file];
      if (fault === undefined) continue;
      for (const law of assertionResults.filter(({ status }) => status === "passed").flatMap(lawsOf)) {
        const key = JSON.stringify([law, fault]);
        const row = counts.get(key) ?? { law, fault };
        counts.set(key, { ...row, [engine]: (row[engine] ?? 0) + 1 });
      }
    }
  }
  const faults = [...new Set(Object.values(FAULTS))];
  const rows = [...counts.values()].sort(
    (a, b) => Number(a.law.slice(1)) - Number(b.law.slice(1)) || faults.indexOf(a.fault) - faults.indexOf(b.fault),
  );
  const cells = rows.map((row, n) => [
    row.law === rows[n - 1]?.law ? "" : row.law,
    row.fault,
    ...Object.keys(ENGINES).map((engine) => String(row[engine] ?? "")),
  ]);
  return ["law", "what is brought about", ...Object.values(ENGINES)]
    .map((title, column) => [title, ...cells.map((cell) => cell[column])])
    .map((texts) => {
      const width = Math.max(...texts.map(({ length }) => length));
      return [texts[0], "-".repeat(width), ...texts.slice(1)].map((text) => text.padEnd(width));
    })
    .reduce((lines, column) => lines.map((line, n) => `${line} ${column[n]} |`), Array(rows.length + 2).fill("|"))
    .join("\n");
}

const guide = () => readFileSync(join(ROOT, GUIDE), "utf8");

const betweenMarks = () => {
  const text = guide();
  return text.slice(text.indexOf(BEGIN) + BEGIN.length, text.indexOf(END)).trim();
};

/** A sentence where the guide has another table; undefined where it has this one. */
export const staleTable = (table) =>
  betweenMarks() === table
    ? undefined
    : `${GUIDE}: the table of faults is not what ran (npm test -- chromium firefox webkit --write-table writes it)`;

export function writeTable(table) {
  const text = guide();
  const from = text.indexOf(BEGIN) + BEGIN.length;
  writeFileSync(join(ROOT, GUIDE), `${text.slice(0, from)}\n\n${table}\n\n${text.slice(text.indexOf(END))}`);
}
