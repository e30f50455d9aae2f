import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBrowser } from "../../setup/browsers.mjs";
import { isAlive, killTree, signal, treeOf } from "../../setup/processes.mjs";
import type { Browser, Engine } from "./browser.js";
import { startPuppeteer } from "./puppeteer.js";
import { startWebKit } from "./webkit.js";

/** How long a browser may take to end by itself. */
const QUIT_MS = 5_000;

const running = new Set<number>();
process.on("exit", () => running.forEach(killTree));

/**
 * Starts a browser with an empty profile.
 * @param options `profile`: that of a browser that was killed, to go on with
 */
export async function launch(
  engine: Engine,
  options: { profile?: string } = {},
): Promise<Browser & { profile: string }> {
  const path = findBrowser(engine);
  if (!path) throw new Error(`${engine} is not installed: npm test installs it`);
  const profile = options.profile ?? (await mkdtemp(join(tmpdir(), `agui-${engine}-`)));
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
