import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Engine, Tab } from "../driver/browser.js";
import { launch } from "../driver/launch.js";
import { pick } from "../hammer-random.js";
import type { Fault } from "./faults.js";

export interface FaultyTabsOptions {
  readonly engine: Engine;
  /** The page of each tab. */
  readonly urls: readonly string[];
}

/** A browser under faults and its tabs, which are opened again when they are gone. */
export class FaultyTabs {
  readonly all: Tab[] = [];
  private launched: (Browser & { readonly profile: string }) | undefined;

  constructor(private readonly options: FaultyTabsOptions) {}

  async start(): Promise<this> {
    this.launched = await launch(this.options.engine);
    await this.openAll();
    return this;
  }

  get browser(): Browser & { readonly profile: string } {
    if (this.launched === undefined) throw new Error("start() comes first");
    return this.launched;
  }

  /**
   * Lets a fault befall a random tab, a random worker or the browser.
   *
   * @param workers their names
   */
  async cause(fault: Fault, random: () => number, workers: readonly string[]): Promise<void> {
    const index = Math.floor(random() * this.all.length);
    const tab = this.all[index]!;
    const worker = pick(random, workers);
    switch (fault) {
      case "browser killed":
        return this.killBrowser();
      case "worker ended":
        await this.browser.endSharedWorkers(worker);
        return;
      case "worker closed":
        return tab.evaluate((name) => {
          const control = new BroadcastChannel("lab-control");
          control.postMessage({ end: name });
          control.close();
        }, worker);
      case "tab crashed":
        await tab.crash();
        if (random() < 0.5) return tab.reload();
        return this.reopen(index);
      case "tab closed":
        return this.reopen(index);
      case "tab reloaded":
        return tab.reload();
    }
  }

  /** Whether the browser deleted all storage of the origin as it was started last, and something has opened it since. */
  hasNewStorage(): boolean {
    return this.options.engine === "chromium" && hasNewStorage(this.browser.profile);
  }

  close(): Promise<void> {
    return this.browser.close();
  }

  /** Ends the browser. @returns the folder of its profile, which stays */
  async leave(): Promise<string> {
    await this.browser.kill();
    return this.browser.profile;
  }

  private async killBrowser(): Promise<void> {
    const { profile } = this.browser;
    await this.browser.kill();
    this.launched = await launch(this.options.engine, { profile });
    await this.openAll();
  }

  /** In the place of the one that was there. */
  private async reopen(index: number): Promise<void> {
    await this.all[index]?.close();
    await this.open(index);
  }

  private async openAll(): Promise<void> {
    for (const [index] of this.options.urls.entries()) await this.open(index);
  }

  private async open(index: number): Promise<void> {
    this.all[index] = await this.browser.newTab(this.options.urls[index]);
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
