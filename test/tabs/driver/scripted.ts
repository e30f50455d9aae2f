import { afterAll, beforeAll, inject } from "vitest";
import type { HostKind, RuntimeStatus } from "ag-ui-local-runtime/client";
import { type BlockedUntil, GO_ON_PATH } from "../pages/lab-orders.js";
import type { Note } from "../pages/scripted-notes.js";
import type { View } from "../pages/scripted.js";
import type { Browser, Tab } from "./browser.js";
import { launch } from "./launch.js";

/** The browser of a file's tests. */
export interface GivenBrowser {
  readonly browser: Browser;
  /**
   * SIGKILL for all of its processes, and started again on the same profile. Tabs of before are gone.
   *
   * @param between is given the profile's folder while no browser runs
   */
  killAndRestart(between?: (profile: string) => void): Promise<void>;
}

/** A browser for all tests of a file, and a fresh database for each `lab()`. */
export function useBrowser(): GivenBrowser {
  let browser: Awaited<ReturnType<typeof launch>> | undefined;
  beforeAll(async () => {
    browser = await launch(inject("engine"));
  });
  afterAll(() => browser?.close());
  return {
    get browser() {
      if (!browser) throw new Error("the browser was not started");
      return browser;
    },
    async killAndRestart(between) {
      if (!browser) throw new Error("the browser was not started");
      const { profile } = browser;
      await browser.kill();
      between?.(profile);
      browser = await launch(inject("engine"), { profile });
    },
  };
}

let databases = 0;

/** Tabs on test/tabs/pages/scripted.html that share a fresh database. */
export class LabTabs {
  readonly #db = `lab-${process.pid}-${databases++}`;
  readonly #tabs: Tab[] = [];

  constructor(private readonly given: { readonly browser: Browser }) {}

  /** @param host tabs with the same one share a worker, where it is one to be shared */
  async open(host = "one", kind: HostKind = "shared-worker"): Promise<LabTab> {
    const tab = await this.given.browser.newTab(`${this.url(host)}&kind=${kind}`);
    this.#tabs.push(tab);
    return new LabTab(tab);
  }

  url(host = "one"): string {
    return `${inject("pages")}scripted.html?worker=${encodeURIComponent(this.workerName(host))}`;
  }

  /** The name of the SharedWorker that tabs with this `host` share. */
  workerName(host = "one"): string {
    return `${this.#db}#${host}`;
  }

  /** Ends that worker, as the engine's driver can: from outside, else from within at the request of this tab. */
  async endHost(from: LabTab, host = "one"): Promise<void> {
    const name = this.workerName(host);
    if (this.given.browser.engine !== "chromium") return from.tab.evaluate((it) => window.lab.endHost(it), name);
    const ended = await this.given.browser.endSharedWorkers(name);
    if (ended !== 1) throw new Error(`${ended} workers are called ${name}`);
  }

  /** Lets nothing else of that worker run, until `letHostGoOn` or its end; resolves once it has said that it obeys. */
  blockHost(from: LabTab, host = "one", until: BlockedUntil = "let go"): Promise<void> {
    return from.tab.evaluate((name, how) => window.lab.blockHost(name, how), this.workerName(host), until);
  }

  async letHostGoOn(host = "one"): Promise<void> {
    await fetch(new URL(`${GO_ON_PATH}?${encodeURIComponent(this.workerName(host))}`, inject("pages")));
  }

  /** Ends the tabs, so that their workers end too. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#tabs.map((tab) => tab.close()));
  }
}

/** One such tab. */
export class LabTab {
  constructor(readonly tab: Tab) {}

  async follow(agentId: string, threadId: string): Promise<this> {
    return this.openThread(agentId, threadId, true);
  }

  /** Without following it: only its own runs are seen. */
  async takePart(agentId: string, threadId: string): Promise<this> {
    return this.openThread(agentId, threadId, false);
  }

  private async openThread(...args: [agentId: string, threadId: string, follow: boolean]): Promise<this> {
    await this.tab.waitFor(() => "lab" in window);
    await this.tab.evaluate((agent, thread, follow) => window.lab.open(agent, thread, follow), ...args);
    return this;
  }

  start(threadId: string, order: unknown, runId?: string): Promise<void> {
    return this.tab.evaluate(
      (thread, content, run) => window.lab.start(thread, content, run ?? undefined),
      threadId,
      order,
      runId,
    );
  }

  run(threadId: string, order: unknown) {
    return this.tab.evaluate((thread, content) => window.lab.run(thread, content), threadId, order);
  }

  /** On an agent that follows nothing, so that only the host can refuse it. */
  runUnseen(agentId: string, threadId: string, order: unknown = {}) {
    return this.tab.evaluate(
      (agent, thread, content) => window.lab.runUnseen(agent, thread, content),
      agentId,
      threadId,
      order,
    );
  }

  /** Lets an agent that is asked to (`heldAt`) wait until `letGo`, or the end of this tab. */
  hold(threadId: string): Promise<void> {
    return this.tab.evaluate((thread) => window.lab.hold(thread), threadId);
  }

  letGo(threadId: string): Promise<void> {
    return this.tab.evaluate((thread) => window.lab.letGo(thread), threadId);
  }

  stop(threadId: string): Promise<void> {
    return this.tab.evaluate((thread) => window.lab.stop(thread), threadId);
  }

  /** How the tab stands with its host. */
  status(): Promise<RuntimeStatus> {
    return this.tab.evaluate(() => window.lab.status);
  }

  /** What the agent `noted` has noted of its executions. */
  notes(): Promise<Note[]> {
    return this.tab.evaluate(() => window.lab.notes());
  }

  view(threadId: string): Promise<View> {
    return this.tab.evaluate((thread) => window.lab.view(thread), threadId);
  }

  /** Waits until the thread is idle after a run, however that ended, and all of it is applied. */
  async settled(threadId: string): Promise<View> {
    await this.tab.waitFor((thread) => {
      const { run, isApplying } = window.lab.view(thread);
      return run.is === "idle" && run.last !== undefined && !isApplying;
    }, threadId);
    return this.view(threadId);
  }

  /** Waits until the thread is idle, its last run has counted up to `n`, and all of it is applied. */
  async shows(threadId: string, n: number): Promise<void> {
    await this.tab.waitFor(
      (thread, text) => {
        const view = window.lab.view(thread);
        return view.run.is === "idle" && view.text === text && !view.isApplying;
      },
      threadId,
      numbers(n),
    );
  }

  async running(threadId: string): Promise<void> {
    await this.tab.waitFor((thread) => window.lab.view(thread).run.is === "running", threadId);
  }

  /** Waits until this number was counted, or a later one. */
  async counted(threadId: string, number: number): Promise<void> {
    await this.tab.waitFor(
      (thread, least) => Number(window.lab.view(thread).text.split(" ").at(-1) || -1) >= least,
      threadId,
      number,
    );
  }
}

/** What the agent `count` says up to `n`. */
export const numbers = (n: number): string => Array.from({ length: n }, (_, i) => i).join(" ");
