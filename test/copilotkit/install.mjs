// A package of its own, of some 500 MB, which only some tests and benches need: it is installed when it is asked for.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { npm } from "../setup/install.mjs";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const jsonOf = (path) => (existsSync(at(path)) ? JSON.parse(readFileSync(at(path), "utf8")) : undefined);

const NAME = "@copilotkit/runtime";

/** The peer as it is imported; undefined where it cannot be installed. */
export function installCopilotKit() {
  const { dependencies } = jsonOf("package.json");
  const version = dependencies[NAME];
  const isInstalled = () =>
    Object.entries(dependencies).every(([name, is]) => jsonOf(`node_modules/${name}/package.json`)?.version === is);
  // Some registries lack the packages of other platforms, and then `npm ci` takes the lock for incomplete.
  for (const way of [["ci"], ["install", "--no-save"]]) {
    if (isInstalled()) break;
    console.log(`npm ${way.join(" ")} in test/copilotkit: ${NAME} ${version}`);
    npm([...way, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: at(".") });
  }
  return isInstalled() ? { url: pathToFileURL(at("peer.mjs")).href, version } : undefined;
}
