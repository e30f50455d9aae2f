import type { Engine, Tab } from "../driver/browser.js";
import { pick, randomFrom } from "../hammer-random.js";
import type { Note } from "../pages/scripted-notes.js";
import type { Order } from "../pages/soak.js";
import { check, type Findings, type LoggedRun, noFindings, type Shown } from "./check.js";
import { type Collector, startCollector } from "./collector.js";
import { type Fault, randomFault } from "./faults.js";
import { SoakTabs } from "./soak-tabs.js";

export interface SoakOptions {
  readonly engine: Engine;
  /** Of a dev server, with a slash at its end. */
  readonly origin: string;
  readonly seed: number;
  readonly kills: number;
  /** No further kill after this time, in ms. */
  readonly limitMs?: number;
  readonly log?: (line: string) => void;
}

export interface SoakReport {
  readonly seed: number;
  readonly engine: Engine;
  readonly seconds: number;
  readonly kills: Readonly<Partial<Record<Fault, number>>>;
  /** Runs in the log by their status. */
  readonly runs: Readonly<Record<string, number>>;
  /** What callers of `runAgent` were told, where they lived to hear it. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Pieces of what tabs were told. */
  readonly seen: number;
  readonly executions: number;
  /** How often the browser deleted its own damaged storage: what is checked then begins anew. */
  readonly storageLosses: number;
  readonly findings: Findings & {
    /** Threads that take no run, tabs and calls that do not come to rest (L7, L9, L13). */
    readonly wedged: string[];
  };
}

const THREADS = ["thread-a", "thread-b", "thread-c"];
/** Three tabs share a worker, one has another. */
const HOSTS = ["one", "one", "one", "two"];
/** How long a run of a free thread may take. */
const PROBE_MS = 120_000;

/** A browser under random faults, with tabs that run, stop and follow; checks after each fault that no law was broken. */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const collector = await startCollector();
  try {
    const tabs = await new SoakTabs({
      engine: options.engine,
      origin: options.origin,
      dbName: `soak-${options.seed}`,
      hosts: HOSTS,
      threads: THREADS,
      report: collector.url,
    }).start();
    const soaking = new Soak(options, collector, tabs);
    try {
      return await soaking.run();
    } finally {
      // What was found can be looked for in the profile.
      if (soaking.isClean()) await tabs.close();
      else options.log?.(`the browser's profile is left in ${await tabs.leave()}`);
    }
  } finally {
    await collector.close();
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What is asked of a tab that may be dying has no answer then. */
const send = (call: Promise<unknown>): void => {
  call.catch(() => undefined);
};

class Soak {
  private readonly random: () => number;
  private readonly kills: Partial<Record<Fault, number>> = {};
  private readonly outcomes: Record<string, number> = {};
  private readonly wedged: string[] = [];
  private log: LoggedRun[] = [];
  private notes: Note[] = [];
  private findings: Findings = noFindings();
  private runs = 0;
  private storageLosses = 0;
  /** Runs and executions, once they were added up: see `count`. */
  private readonly counted = { runs: {} as Record<string, number>, executions: 0 };

  constructor(
    private readonly options: SoakOptions,
    private readonly collector: Collector,
    private readonly tabs: SoakTabs,
  ) {
    this.random = randomFrom(options.seed);
  }

  async run(): Promise<SoakReport> {
    const { kills, limitMs = Infinity, log } = this.options;
    const start = performance.now();
    for (let kill = 1; kill <= kills && performance.now() - start < limitMs && this.isClean(); kill++) {
      const fault = randomFault(this.options.engine, this.random);
      await this.disturb(fault);
      this.kills[fault] = (this.kills[fault] ?? 0) + 1;
      await this.settle(fault);
      log?.(`${kill}/${kills} ${fault}: ${this.log.length} runs, ${this.collector.pieces} pieces seen`);
    }
    if (this.wedged.length === 0) await this.readAgain();
    this.count();
    return {
      seed: this.options.seed,
      engine: this.options.engine,
      seconds: (performance.now() - start) / 1_000,
      kills: this.kills,
      runs: this.counted.runs,
      outcomes: this.outcomes,
      seen: this.collector.pieces,
      executions: this.counted.executions,
      storageLosses: this.storageLosses,
      findings: { ...this.findings, wedged: this.wedged },
    };
  }

  isClean(): boolean {
    return this.wedged.length === 0 && Object.values(this.findings).every((found: string[]) => found.length === 0);
  }

  private anyTab(): Tab {
    return pick(this.random, this.tabs.all);
  }

  private nextRunId(): string {
    return `run-${this.runs++}`;
  }

  private startSomewhere(threadId: string): void {
    const order: Order = { n: 5 + Math.floor(this.random() * 55), everyMs: Math.floor(this.random() * 12) };
    const fresh = this.random() < 0.5;
    send(this.anyTab().evaluate((...asked) => window.soak.start(...asked), threadId, order, this.nextRunId(), fresh));
  }

  /** Runs and stops in all threads, and in the middle of them the fault. */
  private async disturb(fault: Fault): Promise<void> {
    for (const threadId of THREADS) {
      this.startSomewhere(threadId);
      await pause(this.random() * 40);
    }
    await pause(this.random() * 400);
    if (this.random() < 0.3) {
      send(this.anyTab().evaluate((thread) => window.soak.stop(thread), pick(this.random, THREADS)));
    }
    // Under way when it happens.
    this.startSomewhere(pick(this.random, THREADS));
    await pause(this.random() * 10);
    await this.tabs.cause(fault, this.random, this.tabs.workers);
  }

  /** The browser has lost the log and the notes: what was told of them cannot be checked any more. */
  private beginAnew(): void {
    this.options.log?.("the browser found its own storage damaged and deleted it: what is checked begins anew");
    this.storageLosses++;
    this.count();
    this.log = [];
    this.notes = [];
    this.collector.forget();
  }

  /** Adds the log and the notes to what is reported in the end. */
  private count(): void {
    const { runs } = this.counted;
    for (const { status } of this.log) runs[status] = (runs[status] ?? 0) + 1;
    this.counted.executions += this.notes.filter(({ is }) => is === "started").length;
  }

  /** Everything comes to rest, each thread takes a run, all tabs show it, and what was told so far is right. */
  private async settle(fault: Fault): Promise<void> {
    this.wedged.push(...(await this.tabs.rest()));
    if (this.wedged.length > 0) return;
    if (fault === "browser killed" && this.tabs.hasNewStorage()) this.beginAnew();
    const last: Record<string, string> = {};
    for (const threadId of THREADS) last[threadId] = this.nextRunId();
    await Promise.all(THREADS.map((threadId) => this.probe(threadId, last[threadId]!)));
    if (this.wedged.length > 0) return;
    this.wedged.push(...(await this.tabs.rest(last)));
    if (this.wedged.length === 0) await this.checkAll();
  }

  private async probe(threadId: string, runId: string): Promise<void> {
    const fresh = this.random() < 0.5;
    const outcome = await this.anyTab().evaluate(
      (...asked) => window.soak.probe(...asked),
      threadId,
      { n: 3, everyMs: 0 },
      runId,
      fresh,
      PROBE_MS,
    );
    if (outcome !== "ok") this.wedged.push(`${threadId} does not take ${runId}: ${outcome}`);
  }

  private async checkAll(): Promise<void> {
    const reader = this.anyTab();
    const after: Record<string, number> = {};
    for (const { threadId, runIndex } of this.log) after[threadId] = Math.max(after[threadId] ?? -1, runIndex);
    const shown: Shown[] = [];
    for (const tab of this.tabs.all) {
      shown.push(...(await tab.evaluate(() => window.soak.shown())));
      for (const [outcome, count] of Object.entries(await tab.evaluate(() => window.soak.takeOutcomes()))) {
        this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + count;
        if (outcome.startsWith("untyped")) this.wedged.push(`a run was refused with ${outcome}`);
      }
    }
    const read = await reader.evaluate((known) => window.soak.readLog(known), after);
    this.log.push(...read.runs);
    this.notes = await reader.evaluate(() => window.soak.notes());
    this.findings = check({
      seen: this.collector.seen(),
      log: this.log,
      notes: this.notes,
      shown: [...read.shown, ...shown],
    });
  }

  /** What was in the log once is in it at the end, as it was, and readers are handed a valid sequence of it (L3). */
  private async readAgain(): Promise<void> {
    this.findings.invalid.push(...(await this.anyTab().evaluate(() => window.soak.refusals())));
    const { runs } = await this.anyTab().evaluate(() => window.soak.readLog({}));
    const now = new Map(runs.map((run) => [`${run.threadId} ${run.runIndex}`, JSON.stringify(run)]));
    for (const run of this.log) {
      if (now.get(`${run.threadId} ${run.runIndex}`) === JSON.stringify(run)) continue;
      this.findings.differing.push(`${run.runId} of ${run.threadId} is another one in the log than it was`);
    }
  }
}
