// Finds the browsers of the tests and installs those that are missing. Only node: builtins at load.
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ROOT } from "./install.mjs";

const WINDOWS_ROOTS = [process.env.ProgramFiles, process.env["ProgramFiles(x86)"], process.env.LOCALAPPDATA].filter(
  Boolean,
);

/** Where Firefox goes when it has to be downloaded. */
const DOWNLOADS = join(ROOT, "node_modules", ".cache", "browsers");

/** The browsers of the tests: how each is called, where it lies, what brings it. */
export const BROWSERS = {
  chromium: {
    title: "Chromium",
    variable: "CHROME_PATH",
    commands: ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
    places: [
      "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
      "/Applications/Chromium.app/Contents/MacOS/Chromium",
      ...WINDOWS_ROOTS.map((root) => join(root, "Google", "Chrome", "Application", "chrome.exe")),
    ],
    packages: ["chromium"],
    help: "install Chromium or Google Chrome, or set CHROME_PATH",
  },
  firefox: {
    title: "Firefox",
    variable: "FIREFOX_PATH",
    commands: ["firefox", "firefox-esr"],
    places: [
      "/Applications/Firefox.app/Contents/MacOS/firefox",
      ...WINDOWS_ROOTS.map((root) => join(root, "Mozilla Firefox", "firefox.exe")),
    ],
    packages: ["firefox-esr"],
    help: "install Firefox, or set FIREFOX_PATH",
  },
  webkit: {
    title: "WebKitGTK",
    variable: "WEBKIT_DRIVER_PATH",
    commands: ["WebKitWebDriver"],
    places: [],
    packages: ["webkit2gtk-driver", "xvfb", "xauth", "dbus"],
    help: "it runs on Linux only: install webkit2gtk-driver, xvfb, xauth and dbus",
  },
};

/** How Chromium is started by all tests. Root has no sandbox; the rest keeps it from calling home. */
export function chromiumFlags() {
  return [
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ];
}

export function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The path of a command, as the shell would find it. */
export function which(command) {
  const suffix = process.platform === "win32" ? ".exe" : "";
  return (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, command + suffix))
    .find(isProgram);
}

/** WebKitGTK's test browser, which no PATH has. */
export function findMiniBrowser() {
  const folders = ["/usr/lib", "/usr/libexec", "/usr/lib64"].filter(existsSync);
  const nested = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  return [...folders, ...nested]
    .flatMap((folder) => ["webkit2gtk-4.1", "webkit2gtk-4.0", "webkitgtk-6.0"].map((name) => join(folder, name)))
    .map((folder) => join(folder, "MiniBrowser"))
    .find(isProgram);
}

/** The path of a browser's program (WebKitGTK: of its driver), or undefined where it is not here. */
export function findBrowser(name) {
  const { variable, commands, places } = BROWSERS[name];
  const named = process.env[variable];
  if (named) return isProgram(named) ? named : undefined;
  const found = commands.map(which).find(Boolean) ?? places.find(isProgram);
  if (name === "webkit" && !(findMiniBrowser() && which("xvfb-run") && which("dbus-run-session"))) return undefined;
  return found;
}

/** An installation that takes longer is given up. */
const INSTALL_MS = 300_000;

function run(command, args) {
  console.log(`$ ${[command, ...args].join(" ")}`);
  return spawnSync(command, args, { cwd: ROOT, stdio: "inherit", timeout: INSTALL_MS }).status === 0;
}

/** A command of an installed package. */
const runTool = (path, ...args) => run(process.execPath, [join(ROOT, "node_modules", path), ...args]);

let updated = false;

/** Debian and Ubuntu, as root or with a sudo that asks for nothing. */
export function installPackages(packages) {
  if (process.platform !== "linux" || !which("apt-get")) return false;
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && !(which("sudo") && spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status === 0)) return false;
  const aptGet = (...args) => {
    const command = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", ...args];
    return run(isRoot ? command[0] : "sudo", isRoot ? command.slice(1) : ["-n", ...command]);
  };
  if (!updated) updated = aptGet("update", "-q");
  return aptGet("install", "-q", "-y", "--no-install-recommends", ...packages);
}

/** What the test tools can download themselves; needs the installed dependencies. */
async function download(name) {
  try {
    if (name === "chromium") {
      const { chromium } = await import("playwright");
      const here = () => (isProgram(chromium.executablePath()) ? chromium.executablePath() : undefined);
      if (!here()) runTool("playwright/cli.js", "install", "chromium");
      return here();
    }
    if (name === "firefox") {
      const { getInstalledBrowsers } = await import("@puppeteer/browsers");
      const here = async () => {
        const installed = await getInstalledBrowsers({ cacheDir: DOWNLOADS });
        return installed.find(({ browser }) => browser === "firefox")?.executablePath;
      };
      if (!(await here()))
        runTool("@puppeteer/browsers/lib/cjs/main-cli.js", "install", "firefox@stable", "--path", DOWNLOADS);
      return await here();
    }
  } catch (error) {
    console.log(`the download failed: ${error.message}`);
  }
  return undefined;
}

/**
 * The path of a browser, installed where it is missing and can be.
 * @returns `{ path }`, or `{ missing }`: a sentence that says what to install
 */
export async function obtainBrowser(name) {
  const { title, packages, help, variable } = BROWSERS[name];
  const here = findBrowser(name);
  if (here) return { path: here };
  if (process.env[variable]) return { missing: `${title}: ${variable} names no program (${process.env[variable]})` };
  console.log(`${title} is missing`);
  if (installPackages(packages)) {
    const installed = findBrowser(name);
    if (installed) return { path: installed };
  }
  const downloaded = await download(name);
  return downloaded ? { path: downloaded } : { missing: `${title} cannot be had here: ${help}` };
}
