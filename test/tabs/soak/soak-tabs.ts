import type { Engine, Tab } from "../driver/browser.js";
import type { Rest } from "../pages/soak.js";
import { FaultyTabs } from "./faulty-tabs.js";

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

/** The browser of a soak and its tabs on test/tabs/pages/soak.html. */
export class SoakTabs extends FaultyTabs {
  /** Names of the workers, one for each tab. */
  readonly workers: readonly string[];

  constructor({ engine, origin, dbName, hosts, threads, report }: SoakTabsOptions) {
    const workers = hosts.map((host) => `${dbName}#${host}`);
    const urls = workers.map((worker, index) => {
      const query = new URLSearchParams({ worker, tab: `tab ${index}`, threads: threads.join(","), report });
      return `${origin}soak.html?${query.toString()}`;
    });
    super({ engine, urls });
    this.workers = workers;
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

  private async describe(tab: Tab): Promise<string> {
    const at = this.all.indexOf(tab);
    try {
      return `tab ${at} does not come to rest: ${JSON.stringify(await tab.evaluate(() => window.soak.rest()))}`;
    } catch (error) {
      return `tab ${at} does not answer: ${String(error)}`;
    }
  }
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
