// A package of its own, of some 500 MB, which only some tests and benches need: it is installed when it is asked for.
import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { installPackages } from "../setup/install.mjs";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The peer as it is imported; undefined where it cannot be installed. */
export function installCopilotKit() {
  const { dependencies } = JSON.parse(readFileSync(at("package.json"), "utf8"));
  return installPackages(at("."))
    ? { url: pathToFileURL(at("peer.mjs")).href, version: dependencies["@copilotkit/runtime"] }
    : undefined;
}
