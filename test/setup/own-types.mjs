// node test/setup/own-types.mjs FOLDER [OTHER …]: the types of a folder that has packages of its own, by its tsconfig.json.
// Installs its packages, and those of the others, which it uses too.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { installPackages, ROOT } from "./install.mjs";

const folders = process.argv.slice(2);
for (const folder of folders) {
  if (installPackages(join(ROOT, folder))) continue;
  console.error(`the packages of ${folder} could not be installed`);
  process.exit(1);
}
const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
const { status } = spawnSync(process.execPath, [tsc, "-p", folders[0]], { cwd: ROOT, stdio: "inherit" });
process.exit(status ?? 1);
