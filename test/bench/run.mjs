// `npm run bench`: what streaming, following, attaching, starting, refusing, stopping and a host's death cost in real tabs of headless
// Chromium, and what whole runs and long threads cost each runner, each figure beside a baseline of the same run.
//   npm run bench                          everything
//   npm run bench -- --only stream         one group (may be named several times)
//   npm run bench -- --quick               few repetitions, the small sizes
//   npm run bench -- --samples 9           repetitions after the warm-up (5)
//   npm run bench -- --keep                keeps the figures: test/bench/kept.json and the tables of demo/guides/figures.md
//   npm run bench -- --json FILE           where the figures go (node_modules/.cache/ag-ui-local-runtime/bench.json)
//   npm run bench -- --list                the groups
import { join } from "node:path";
import { parseArgs } from "node:util";
import { obtainBrowser } from "../setup/browsers.mjs";
import { install, requireNode, ROOT } from "../setup/install.mjs";
import { installCopilotKit } from "../copilotkit/install.mjs";

requireNode();
const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: [] },
    quick: { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    samples: { type: "string" },
    json: { type: "string", default: join(ROOT, "node_modules/.cache/ag-ui-local-runtime/bench.json") },
  },
});
if (values.keep && values.quick) {
  console.error("--quick measures small sizes: they are not kept");
  process.exit(1);
}
install();
const { runnerImport } = await import("vite");
const { module } = await runnerImport(join(ROOT, "test/bench/bench.ts"), { configFile: false, logLevel: "error" });
const unknown = values.only.filter((name) => !module.groupNames.includes(name));
if (values.list || unknown.length > 0) {
  console.log(`${unknown.map((name) => `no such group: ${name}\n`).join("")}groups: ${module.groupNames.join(", ")}`);
  process.exit(unknown.length > 0 ? 1 : 0);
}
const { missing } = await obtainBrowser("chromium");
if (missing) {
  console.error(missing);
  process.exit(1);
}
for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => process.exit(1));
const compares = values.only.length === 0 || values.only.includes("runners");
await module.bench({
  peer: compares ? installCopilotKit() : undefined,
  only: values.only,
  quick: values.quick,
  keep: values.keep,
  samples: values.samples === undefined ? (values.quick ? 2 : 5) : Math.max(1, Number(values.samples)),
  json: values.json,
});
// What a browser's end left open must not keep the process.
process.exit(0);
