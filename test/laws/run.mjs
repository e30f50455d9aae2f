// `npm run laws`: breaks each law once, in a copy of the sources, and sees its suite fail.
//   npm run laws            all of them
//   npm run laws -- L5 L6   these
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../setup/install.mjs";
import { BROKEN } from "./laws.mjs";

/** What tests read of the repository. */
const COPIED = ["src", "test", "demo", "package.json", "vite.config.ts", "tsconfig.json", "README.md", "CHANGELOG.md"];

const asked = process.argv.slice(2);
const chosen = BROKEN.filter(({ law }) => asked.length === 0 || asked.includes(law));
if (chosen.length === 0) {
  console.error(`no such law: ${asked.join(", ")} (there are ${BROKEN.map(({ law }) => law).join(", ")})`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), "agui-laws-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"), "dir");

/** @returns how many tests of the suite passed and failed; undefined where it could not be run */
async function run(suite) {
  const report = join(folder, "report.json");
  rmSync(report, { force: true });
  const vitest = join(folder, "node_modules/vitest/vitest.mjs");
  const args = [vitest, "run", "--project=unit*", "--reporter=json", `--outputFile=${report}`, "--bail=1", suite];
  const env = { ...process.env, PROPERTY_FACTOR: "0.2", TEST_LIMIT_MS: "20000" };
  const child = spawn(process.execPath, args, { cwd: folder, stdio: "ignore", env });
  await new Promise((resolve, reject) => child.once("error", reject).once("exit", resolve));
  try {
    const { numPassedTests: passed, numFailedTests: failed } = JSON.parse(readFileSync(report, "utf8"));
    return { passed, failed };
  } catch {
    return undefined;
  }
}

let unheard = 0;
for (const { law, file, find, put, suite, says } of chosen) {
  const path = join(folder, file);
  const whole = readFileSync(path, "utf8");
  writeFileSync(
    path,
    whole.replace(find, () => put),
  );
  const result = await run(suite);
  writeFileSync(path, whole);
  // A file that cannot be run shows nothing.
  const isHeard = result !== undefined && result.failed > 0;
  if (!isHeard) unheard++;
  const counted =
    result === undefined ? "could not be run" : `${result.failed} of ${result.passed + result.failed} fail`;
  console.log(`${isHeard ? "ok  " : "MISS"} ${law.padEnd(4)}${says}: ${suite} ${counted}`);
}
console.log(`\n${chosen.length - unheard} of ${chosen.length} broken laws are noticed`);
process.exitCode = unheard > 0 ? 1 : 0;
