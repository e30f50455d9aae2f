import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Engine, Tab } from "../driver/browser.js";
import { launch } from "../driver/launch.js";
import type { Rest } from "../pages/soak.js";

export interface SoakTabsOptions {
  readonly engine: Engine;
  /** With a slash at its end. */
  readonly origin: string;
  readonly dbName: string;
  /** The worker of each tab, by what stands behind "#" in its name. */
  readonly hosts: readonly string[];
  readonly threads: readonly string[];
  /** Where pages post what they are told. */
  readonly report: string;
}

/** The browser of a soak and its tabs on test/tabs/pages/soak.html, which are opened again when they are gone. */
export class SoakTabs {
  readonly all: Tab[] = [];

  private constructor(
    private readonly options: SoakTabsOptions,
    private launched: Browser & { profile: string },
  ) {}

  static async open(options: SoakTabsOptions): Promise<SoakTabs> {
    const tabs = new SoakTabs(options, await launch(options.engine));
    await tabs.openAll();
    return tabs;
  }

  get browser(): Browser {
    return this.launched;
  }

  workerName(host: string): string {
    return `${this.options.dbName}#${host}`;
  }

  async killBrowser(): Promise<void> {
    const { profile } = this.launched;
    await this.launched.kill();
    this.launched = await launch(this.options.engine, { profile });
    await this.openAll();
  }

  /** Whether the browser deleted all storage of the origin as it was started last, and something has opened it since. */
  hasNewStorage(): boolean {
    return this.options.engine === "chromium" && hasNewStorage(this.launched.profile);
  }

  /** In the place of the one that was there. */
  async reopen(index: number): Promise<void> {
    await this.all[index]?.close();
    this.all[index] = await this.newTab(index);
  }

  /**
   * Waits until everything of each tab has come to rest: connected, no run, no call, all reported.
   *
   * @param last which run each thread must have shown last; absent: any
   * @returns what did not, a sentence each
   */
  async rest(last: Readonly<Record<string, string>> = {}): Promise<string[]> {
    const rests = await Promise.all(this.all.map((tab) => tab.waitFor(isAtRest, last).catch(() => this.describe(tab))));
    return rests.filter((rest) => typeof rest === "string");
  }

  close(): Promise<void> {
    return this.launched.close();
  }

  /** Ends the browser. @returns the folder of its profile, which stays */
  async leave(): Promise<string> {
    await this.launched.kill();
    return this.launched.profile;
  }

  private async describe(tab: Tab): Promise<string> {
    const at = this.all.indexOf(tab);
    try {
      return `tab ${at} does not come to rest: ${JSON.stringify(await tab.evaluate(() => window.soak.rest()))}`;
    } catch (error) {
      return `tab ${at} does not answer: ${String(error)}`;
    }
  }

  private async openAll(): Promise<void> {
    for (const [index] of this.options.hosts.entries()) this.all[index] = await this.newTab(index);
  }

  private async newTab(index: number): Promise<Tab> {
    const { origin, hosts, threads, report } = this.options;
    const query = new URLSearchParams({
      worker: this.workerName(hosts[index]!),
      tab: `tab ${index}`,
      threads: threads.join(","),
      report,
    });
    return this.launched.newTab(`${origin}soak.html?${query.toString()}`);
  }
}

/**
 * Chromium deletes the databases of an origin, all of them, if it finds their files damaged as it opens them; then LevelDB
 * says in the folder's LOG, which begins anew with each opening, that it has created them. No page can prevent that.
 */
function hasNewStorage(profile: string): boolean {
  const folder = join(profile, "data", "Default", "IndexedDB");
  return readdirSync(folder)
    .filter((name) => name.endsWith(".leveldb"))
    .some((name) => /Creating DB .* since it was missing/.test(readFileSync(join(folder, name, "LOG"), "utf8")));
}

/** Runs in the page. */
function isAtRest(last: Readonly<Record<string, string>>): boolean {
  if (!("soak" in window)) return false;
  const { status, pending, reported, runs }: Rest = window.soak.rest();
  if (status !== "connected" || pending > 0 || !reported) return false;
  return Object.entries(runs).every(
    ([threadId, run]) => run.is === "idle" && (last[threadId] === undefined || run.last?.runId === last[threadId]),
  );
}
