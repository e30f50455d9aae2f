// `npm run soak`: random faults on real tabs, and whether any law was broken by them.
//   npm run soak                       200 kills in Chromium
//   npm run soak -- --kills 50         so many
//   npm run soak -- --seed 123         the same schedule again, as far as real time allows
//   npm run soak -- --engine firefox   with what its driver can do
//   npm run soak -- --json FILE        where the report goes
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { obtainBrowser } from "../../setup/browsers.mjs";
import { install, requireNode, ROOT } from "../../setup/install.mjs";

requireNode();
const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "200" },
    seed: { type: "string", default: String(Math.trunc(Math.random() * 2 ** 31)) },
    engine: { type: "string", default: "chromium" },
    json: { type: "string" },
  },
});
const [kills, seed] = [Number(values.kills), Number(values.seed)];
if (!["chromium", "firefox", "webkit"].includes(values.engine) || !Number.isSafeInteger(kills + seed)) {
  console.error("--engine is chromium, firefox or webkit; --kills and --seed are whole numbers");
  process.exit(1);
}
install();
const { missing } = await obtainBrowser(values.engine);
if (missing) {
  console.error(missing);
  process.exit(1);
}
for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => process.exit(1));
const { runnerImport } = await import("vite");
const { module } = await runnerImport(join(ROOT, "test/tabs/soak/main.ts"), { configFile: false, logLevel: "error" });
const report = await module.main({ engine: values.engine, kills, seed });
if (values.json) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
// What a browser's end left open must not keep the process.
process.exit(Object.values(report.findings).every((found) => found.length === 0) ? 0 : 1);
