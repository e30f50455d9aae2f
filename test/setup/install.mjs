// Shared by `npm start` and `npm test`. Only node: builtins, nothing is installed yet.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** Ends the process with a sentence where Node.js is too old for Vite. */
export function requireNode(version = process.versions.node) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19)) return;
  console.error(`This needs Node.js 20.19 or newer (or 22.12 or newer); this is ${version}. See https://nodejs.org/`);
  process.exit(1);
}

/** Runs npm, whichever way this process was started. */
export function npm(args, options = {}) {
  const cli = process.env.npm_execpath;
  return cli?.endsWith(".js") && existsSync(cli)
    ? spawnSync(process.execPath, [cli, ...args], { cwd: ROOT, stdio: "inherit", ...options })
    : spawnSync("npm", args, { cwd: ROOT, stdio: "inherit", shell: process.platform === "win32", ...options });
}

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(join(ROOT, file), "utf8")).packages ?? {};
  } catch {
    return undefined;
  }
}

/** Why node_modules has to be installed, or undefined where it is what the lock says. */
function outOfDate() {
  const installed = packagesOf("node_modules/.package-lock.json");
  if (!installed) return "nothing is installed yet";
  const locked = packagesOf("package-lock.json");
  if (!locked) return undefined;
  // Optional packages of other platforms are in the lock and rightly not on the disk.
  const stale = Object.entries(locked).find(
    ([path, { version, optional, devOptional, link }]) =>
      path !== "" &&
      !link &&
      (installed[path] ? installed[path].version !== version : !optional && !devOptional) &&
      path.startsWith("node_modules/"),
  );
  return stale && `${stale[0]} is not what package-lock.json says`;
}

/** Installs the dependencies where they are missing or older than the lock. Ends the process where that fails. */
export function install() {
  const reason = outOfDate();
  if (!reason) return;
  // Some registries lack the packages of other platforms, and then `npm ci` takes the lock for incomplete.
  const ways = [["ci"], ["install", "--no-save"]].slice(existsSync(join(ROOT, "package-lock.json")) ? 0 : 1);
  for (const way of ways) {
    console.log(`npm ${way.join(" ")}: ${reason}`);
    const { status, error } = npm([...way, "--no-audit", "--no-fund", "--loglevel=error"]);
    if (status === 0) return;
    console.error(`npm ${way[0]} failed${error ? `: ${error.message}` : ""}; see above.`);
  }
  process.exit(1);
}

/** Whether a folder's own packages are there, as its package.json says. */
export function hasPackages(folder) {
  const jsonOf = (path) => (existsSync(join(folder, path)) ? JSON.parse(readFileSync(join(folder, path), "utf8")) : {});
  const { dependencies } = jsonOf("package.json");
  // `npm:name@1.2.3` is a package under another name.
  return Object.entries(dependencies).every(
    ([name, version]) => jsonOf(`node_modules/${name}/package.json`).version === version.replace(/^npm:.*@/, ""),
  );
}

/**
 * Installs a folder's own packages, where they are not what its package.json says: they are large, and only some tests
 * need them.
 *
 * @returns whether they are there
 */
export function installPackages(folder) {
  // Some registries lack the packages of other platforms, and then `npm ci` takes the lock for incomplete.
  for (const way of [["ci"], ["install", "--no-save"]]) {
    if (hasPackages(folder)) break;
    console.log(`npm ${way.join(" ")} in ${relative(ROOT, folder)}`);
    npm([...way, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder });
  }
  return hasPackages(folder);
}
