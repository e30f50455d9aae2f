import type { Message } from "@ag-ui/core";
import { modelServer, type ModelServer } from "../../openai/server.js";
import type { Engine, Tab } from "../driver/browser.js";
import { pick, randomFrom } from "../hammer-random.js";
import type { ChaosRest } from "../pages/chaos.js";
import { check, type Shown } from "../soak/check.js";
import { FaultyTabs } from "../soak/faulty-tabs.js";
import { randomFault } from "../soak/faults.js";
import { checkChaos } from "./check.js";
import { PlannedModel } from "./model.js";
import { type Plan, randomPlan } from "./plan.js";
import { startWitness, type Witness } from "./witness.js";

export interface ChaosOptions {
  readonly engine: Engine;
  /** Of the test pages, with a slash at its end. */
  readonly origin: string;
  readonly seed: number;
  /** All in one browser, with one log. */
  readonly rounds: number;
  readonly log?: (line: string) => void;
}

export interface ChaosReport {
  readonly seed: number;
  /** Rounds that were run. */
  readonly rounds: number;
  readonly seconds: number;
  /** How often each fault came, those of the model's server among them. */
  readonly faults: Readonly<Record<string, number>>;
  readonly typed: number;
  readonly answers: number;
  /** Answers in the middle of a thread that are not whole, by the reason. */
  readonly left: Readonly<Record<string, number>>;
  /** How often a person had to have a message answered again, by how its last run had ended. */
  readonly runAgain: Readonly<Record<string, number>>;
  readonly executions: number;
  readonly runs: Readonly<Record<string, number>>;
  /** How often the browser deleted its own damaged storage. */
  readonly storageLosses: number;
  /** What must not be, a sentence each. */
  readonly found: readonly string[];
}

const THREADS = ["thread-a", "thread-b"];
/** Two tabs share a worker, one has another. */
const HOSTS = ["one", "one", "two"];
/** How often a person has the last message answered again until it is given up: without faults once is enough. */
const RETRIES = 2;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const count = (counts: Record<string, number>, what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);

/** Random rounds of messages, multi-step answers and faults; after each everything comes to rest and is checked. */
export async function chaos(options: ChaosOptions): Promise<ChaosReport> {
  const [server, witness] = await Promise.all([modelServer(), startWitness()]);
  try {
    const tabs = new ChaosTabs(options, server, witness);
    await tabs.start();
    const run = new Chaos(options, server, witness, tabs);
    try {
      return await run.run();
    } finally {
      if (run.isClean) await tabs.close();
      else options.log?.(`the browser's profile is left in ${await tabs.leave()}`);
    }
  } finally {
    await Promise.all([server.close(), witness.close()]);
  }
}

class ChaosTabs extends FaultyTabs {
  readonly workers: readonly string[];

  constructor({ engine, origin, seed }: ChaosOptions, server: ModelServer, witness: Witness) {
    const ports = [server.url, witness.url].map((url) => new URL(url).port).join("#");
    const workers = HOSTS.map((host) => `chaos-${seed}#${host}#${ports}`);
    const urls = workers.map((worker) => {
      const query = new URLSearchParams({ worker, threads: THREADS.join(","), witness: witness.url });
      return `${origin}chaos.html?${query.toString()}`;
    });
    super({ engine, urls });
    this.workers = workers;
  }

  /** @returns which tabs do not come to rest, a sentence each */
  async rest(): Promise<string[]> {
    const rests = await this.whereRests(isAtRest);
    if (rests.length > 0) return rests;
    const inLog = await this.whereRests(() => window.chaos.isLogAtRest());
    return inLog.length > 0 ? inLog : this.whereRests(isAtRest);
  }

  private async whereRests(isRest: () => boolean | Promise<boolean>): Promise<string[]> {
    const rests = await Promise.all(this.all.map((tab, at) => tab.waitFor(isRest).catch(() => this.describe(tab, at))));
    return rests.filter((rest) => typeof rest === "string");
  }

  /** What the tabs show in the end: what is expected, unless that does not come. */
  async shown(expected: readonly Shown[]): Promise<Shown[]> {
    const whole = expected.map(({ messages }) => messages.join());
    const complete = (all: string[]): boolean =>
      window.chaos.shown().every(({ messages }, thread) => messages.join() === all[thread]);
    const shown = this.all.map(async (tab) => {
      await tab.waitFor(complete, whole).catch(() => undefined);
      return tab.evaluate(() => window.chaos.shown());
    });
    return (await Promise.all(shown)).flat();
  }

  private async describe(tab: Tab, at: number): Promise<string> {
    try {
      return `tab ${at} does not come to rest: ${JSON.stringify(await tab.evaluate(() => window.chaos.rest()))}`;
    } catch (error) {
      return `tab ${at} does not answer: ${String(error)}`;
    }
  }
}

/** Runs in the page. */
function isAtRest(): boolean {
  if (!("chaos" in window)) return false;
  const rest: ChaosRest = window.chaos.rest();
  if (rest.status !== "connected" || rest.sending > 0) return false;
  return Object.values(rest.threads).every(
    ({ status, run, waiting }) => status === "ready" && run.is === "idle" && waiting.length === 0,
  );
}

class Chaos {
  private readonly random: () => number;
  private readonly model: PlannedModel;
  private readonly faults: Record<string, number> = {};
  private readonly runAgain: Record<string, number> = {};
  private readonly retries = new Map<string, number>();
  private readonly plans = new Map<string, Plan>();
  private found: string[] = [];
  private storageLosses = 0;
  private last: Pick<ChaosReport, "answers" | "left" | "runs"> = { answers: 0, left: {}, runs: {} };

  constructor(
    private readonly options: ChaosOptions,
    private readonly server: ModelServer,
    private readonly witness: Witness,
    private readonly tabs: ChaosTabs,
  ) {
    this.random = randomFrom(options.seed);
    this.model = new PlannedModel(randomFrom(options.seed + 1));
    server.script(this.model.script);
  }

  get isClean(): boolean {
    return this.found.length === 0;
  }

  async run(): Promise<ChaosReport> {
    const { rounds, seed, log } = this.options;
    const start = performance.now();
    let round = 0;
    while (round < rounds && this.isClean) {
      round++;
      const faults = await this.disturb();
      await this.settle(faults.includes("browser killed"));
      log?.(`${round}/${rounds} ${faults.join(", ")}: ${JSON.stringify(this.last)}`);
    }
    return {
      seed,
      rounds: round,
      seconds: (performance.now() - start) / 1_000,
      faults: { ...this.faults, ...this.model.faults },
      typed: this.plans.size,
      ...this.last,
      runAgain: this.runAgain,
      executions: [...this.witness.executions.values()].reduce((sum, { size }) => sum + size, 0),
      storageLosses: this.storageLosses,
      found: this.found,
    };
  }

  private anyTab(): Tab {
    return pick(this.random, this.tabs.all);
  }

  private typeSomewhere(threadId: string): void {
    const plan = randomPlan(`m${this.plans.size}`, this.random);
    this.plans.set(plan.id, plan);
    // A tab that is dying has no answer.
    this.anyTab()
      .evaluate((thread, given) => window.chaos.type(thread, given), threadId, plan)
      .catch(() => undefined);
  }

  /** Messages in all threads, and in the middle of their answers one or two faults. */
  private async disturb(): Promise<string[]> {
    this.model.isCalm = false;
    for (const threadId of THREADS) {
      for (let n = Math.floor(this.random() * 3); n >= 0; n--) {
        this.typeSomewhere(threadId);
        await pause(this.random() * 60);
      }
    }
    const faults: string[] = [];
    for (let n = this.random() < 0.3 ? 2 : 1; n > 0; n--) {
      await pause(this.random() * 700);
      faults.push(await this.befall());
      count(this.faults, faults.at(-1)!);
      if (this.random() < 0.5) this.typeSomewhere(pick(this.random, THREADS));
    }
    await pause(this.random() * 200);
    return faults;
  }

  private async befall(): Promise<string> {
    const { engine } = this.options;
    const what = this.random();
    if (what < 0.15) {
      this.model.isDown = true;
      this.server.cut();
      await pause(this.random() * 400);
      this.model.isDown = false;
      return "server down";
    }
    if (what < 0.3 && engine === "chromium") {
      const worker = pick(this.random, this.tabs.workers);
      // Between its end and its next start there is none.
      const end = await this.tabs.browser.takeOffline(worker).catch(() => undefined);
      await pause(this.random() * 600);
      // It may have died meanwhile.
      await end?.().catch(() => undefined);
      return end === undefined ? "no worker" : "offline";
    }
    const fault = randomFault(engine, this.random);
    await this.tabs.cause(fault, this.random, this.tabs.workers);
    return fault;
  }

  /** Everything comes to rest; what was left to a person goes on when that person says so; then all is checked. */
  private async settle(wasKilled: boolean): Promise<void> {
    this.model.isCalm = true;
    // Answers may begin to stall while others are let go.
    const releasing = setInterval(() => this.server.release(), 50);
    try {
      if (await this.isStuck()) return;
      if (wasKilled && this.tabs.hasNewStorage()) this.beginAnew();
      for (const threadId of THREADS) this.typeSomewhere(threadId);
      for (let n = 0; n <= RETRIES; n++) {
        if (await this.isStuck()) return;
        if (!(await this.retryUnfinished())) break;
      }
      await this.checkAll();
    } finally {
      clearInterval(releasing);
    }
  }

  private async isStuck(): Promise<boolean> {
    this.found.push(...(await this.tabs.rest()));
    return !this.isClean;
  }

  private beginAnew(): void {
    this.options.log?.("the browser found its own storage damaged and deleted it: what is checked begins anew");
    this.storageLosses++;
    this.witness.forget();
  }

  /** @returns whether something was to be answered again */
  private async retryUnfinished(): Promise<boolean> {
    let isAny = false;
    for (const threadId of THREADS) {
      const tab = this.anyTab();
      const { threads } = await tab.evaluate(() => window.chaos.rest());
      const { run } = threads[threadId]!;
      if (run.is !== "idle" || run.last === undefined || run.last.status === "finished") continue;
      isAny = true;
      count(this.runAgain, `${run.last.status} ${run.last.error?.code ?? ""}`);
      this.options.log?.(`${threadId} is run again after ${JSON.stringify(run)}`);
      const { messageId, outcome } = await tab.evaluate((thread) => window.chaos.runAgain(thread), threadId);
      this.retries.set(messageId, (this.retries.get(messageId) ?? 0) + 1);
      if (outcome !== "ok") this.found.push(`${threadId} cannot be run again: ${outcome}`);
    }
    return isAny;
  }

  private async checkAll(): Promise<void> {
    const reader = this.anyTab();
    const log = await reader.evaluate(() => window.chaos.readLog());
    const shown = await this.tabs.shown(log.shown);
    const replays = await reader.evaluate(() => window.chaos.replayed());
    const refused = await reader.evaluate(() => window.chaos.refusals());
    const findings = check({ seen: [], notes: [], log: log.runs, shown: [...log.shown, ...shown, ...replays] });
    const threads = new Map(
      log.shown.map(({ threadId, messages }) => [threadId, messages.map((it) => JSON.parse(it) as Message)]),
    );
    const { witness, plans, retries } = this;
    const { found, answers } = checkChaos({ witness, plans, retries, threads, runs: log.runs });
    const errors = this.tabs.all.flatMap((tab) => tab.errors);
    this.found.push(
      ...found,
      ...Object.entries(findings).flatMap(([kind, all]: [string, string[]]) => all.map((one) => `${kind}: ${one}`)),
      ...refused.map((one) => `invalid: ${one}`),
      ...this.model.complaints.splice(0),
      ...[...witness.typed.values()].flatMap(({ messageId, refused: code }) =>
        code === undefined ? [] : [`${messageId} was refused: ${code}`],
      ),
    );
    if (!this.isClean) this.found.push(...errors.map((error) => `a tab printed ${error}`));
    const runs: Record<string, number> = {};
    for (const { status } of log.runs) count(runs, status);
    const left: Record<string, number> = {};
    for (const answer of answers) if (answer.left !== undefined) count(left, answer.left);
    this.last = { answers: answers.length, left, runs };
  }
}
