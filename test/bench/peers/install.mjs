// What the bench compares with is a package of its own, which nothing else needs: it is installed when it is asked for.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { npm } from "../../setup/install.mjs";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const jsonOf = (path) => (existsSync(at(path)) ? JSON.parse(readFileSync(at(path), "utf8")) : undefined);

const NAME = "@copilotkit/runtime";

/** The peer as the bench imports it; undefined where it cannot be installed. */
export function installPeers() {
  const version = jsonOf("package.json").dependencies[NAME];
  const isInstalled = () => jsonOf(`node_modules/${NAME}/package.json`)?.version === version;
  // Some registries lack the packages of other platforms, and then `npm ci` takes the lock for incomplete.
  for (const way of [["ci"], ["install", "--no-save"]]) {
    if (isInstalled()) break;
    console.log(`npm ${way.join(" ")} in test/bench/peers: ${NAME} ${version}, to compare with`);
    npm([...way, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: at(".") });
  }
  return isInstalled() ? { url: pathToFileURL(at("copilotkit.mjs")).href, version } : undefined;
}
