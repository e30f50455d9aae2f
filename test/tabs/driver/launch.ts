import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findBrowser } from "../../setup/browsers.mjs";
import { isAlive, killTree, signal, treeOf } from "../../setup/processes.mjs";
import type { Browser, Engine } from "./browser.js";
import { startPuppeteer } from "./puppeteer.js";
import { startWebKit } from "./webkit.js";

/** How long a browser may take to end by itself. */
const QUIT_MS = 5_000;

const running = new Set<number>();
process.on("exit", () => running.forEach(killTree));

/** Settings of the user, as the engine itself keeps them: Chromium as nested objects, Firefox by whole names. */
export type Preferences = Readonly<Record<string, unknown>>;

/** What a profile begins with. Firefox: what puppeteer sets itself goes before. */
async function writePreferences(engine: Engine, profile: string, preferences: Preferences): Promise<void> {
  const [path, content] =
    engine === "chromium"
      ? [join(profile, "data", "Default", "Preferences"), JSON.stringify(preferences)]
      : [join(profile, "data", "prefs.js"), Object.entries(preferences).map(userPref).join("\n")];
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}

const userPref = (preference: [name: string, value: unknown]): string =>
  `user_pref(${preference.map((part) => JSON.stringify(part)).join(", ")});`;

/**
 * Starts a browser with an empty profile.
 * @param options `profile`: that of a browser that was killed, to go on with; `preferences`: of a new one (not in WebKit)
 */
export async function launch(
  engine: Engine,
  options: { profile?: string; preferences?: Preferences } = {},
): Promise<Browser & { profile: string }> {
  const path = findBrowser(engine);
  if (!path) throw new Error(`${engine} is not installed: npm test installs it`);
  const profile = options.profile ?? (await mkdtemp(join(tmpdir(), `agui-${engine}-`)));
  if (options.preferences !== undefined) await writePreferences(engine, profile, options.preferences);
  const started = engine === "webkit" ? await startWebKit(path, profile) : await startPuppeteer(engine, path, profile);
  running.add(started.pid);

  async function end(quit: () => Promise<void>): Promise<void> {
    // Taken before: what is left of a tree whose root has ended has other parents.
    const pids = treeOf(started.pid);
    await Promise.race([quit().catch(() => {}), new Promise((resolve) => setTimeout(resolve, QUIT_MS).unref())]);
    if (isAlive(started.pid)) killTree(started.pid);
    signal(pids, "SIGKILL");
    running.delete(started.pid);
  }

  return {
    engine,
    profile,
    pid: started.pid,
    async newTab(url, { beforeLoad } = {}) {
      const tab = await started.newTab(beforeLoad ? { beforeLoad } : {});
      if (url !== undefined) await tab.goto(url);
      return tab;
    },
    endSharedWorkers: (nameHas = "") => started.endSharedWorkers(nameHas),
    setQuota: (origin, bytes) => started.setQuota(origin, bytes),
    heapOf: (workerHas) => started.heapOf(workerHas),
    takeOffline: (workerHas) => started.takeOffline(workerHas),
    clearSiteData: (origin) => started.clearSiteData(origin),
    async close() {
      await end(() => started.quit());
      await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
    kill: () =>
      end(async () => {
        killTree(started.pid);
      }),
  };
}
