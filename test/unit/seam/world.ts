import { AbstractAgent, EventType, type BaseEvent } from "@ag-ui/client";
import fc from "fast-check";
import { Observable, type Subscriber } from "rxjs";
import { expect } from "vitest";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { locksOf } from "../../../src/platform/locks.js";
import { RunnerError } from "../../../src/run/errors.js";
import { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { LocalAgentRunnerOptions, RunnerPreset } from "../../../src/runner/options.js";
import { emptyMemoryData, memoryRunStore } from "../../../src/storage/memory/memory-run-store.js";
import { streams } from "../run/streams.js";
import { SeamReader } from "./reader.js";
import {
  pick,
  randomOf,
  rest,
  SteppedChannels,
  SteppedClock,
  SteppedStore,
  type Random,
  type Step,
} from "./schedule.js";
import { truthAt } from "./truth.js";

const THREAD = "t";
/** Time that passes in a host without anything new until everybody is taken to be at rest, in ms. */
const LONG_MS = 25_000;
/** Steps after which a schedule is taken to run for ever. */
const ENDLESS = 60_000;

/** A run of more commits than a host keeps for its readers. */
const longRun = (): readonly BaseEvent[] => {
  const text = (type: EventType, more = {}): BaseEvent => ({ type, messageId: "long", ...more });
  return [
    { type: EventType.RUN_STARTED, threadId: THREAD, runId: "run" },
    text(EventType.TEXT_MESSAGE_START, { role: "assistant" }),
    ...Array.from({ length: 500 }, (_, n) => text(EventType.TEXT_MESSAGE_CONTENT, { delta: `${n} ` })),
    text(EventType.TEXT_MESSAGE_END),
  ];
};

let pool: readonly (readonly BaseEvent[])[] | undefined;
/** Random valid runs. They need not be new in each schedule. */
const runsToPlay = (): readonly (readonly BaseEvent[])[] =>
  (pool ??= [
    ...fc.sample(streams(14), { numRuns: 60, seed: 1 }).map(({ events }) => events),
    ...Array.from({ length: 4 }, longRun),
  ]);

/** Any store, as the presets choose theirs. */
class SeamRunner extends LocalAgentRunner {
  static on(preset: RunnerPreset, options: LocalAgentRunnerOptions): LocalAgentRunner {
    return new SeamRunner(preset, options);
  }
}

interface Host {
  readonly name: string;
  readonly runner: LocalAgentRunner;
  readonly store: SteppedStore;
  readonly clock: SteppedClock;
  dead: boolean;
}

/** An agent that says a run's events, as many at a step as it happens. */
class SeamAgent extends AbstractAgent {
  out: Subscriber<BaseEvent> | undefined;
  private said = 0;

  constructor(
    private readonly events: readonly BaseEvent[],
    private readonly end: "finished" | "interrupt" | "error" | "complete",
    private readonly heedsAbort: boolean,
  ) {
    super({ agentId: "seam" });
  }

  override abortRun(): void {
    if (this.heedsAbort) this.out?.complete();
  }

  override run(): Observable<BaseEvent> {
    return new Observable((subscriber) => {
      this.out = subscriber as unknown as Subscriber<BaseEvent>;
    });
  }

  get isSpeaking(): boolean {
    return this.out !== undefined && !this.out.closed;
  }

  step(random: Random): void {
    const { out } = this;
    if (out === undefined) return;
    for (let count = 1 + Math.floor(random() * 4); count > 0; count--) {
      const next = this.events[this.said++];
      if (next !== undefined) {
        out.next(structuredClone(next));
        continue;
      }
      const ids = { threadId: THREAD, runId: "run" };
      if (this.end === "finished") out.next({ type: EventType.RUN_FINISHED, ...ids });
      if (this.end === "error") out.next({ type: EventType.RUN_ERROR, message: "mine" });
      if (this.end === "interrupt") {
        const outcome = { type: "interrupt", interrupts: [{ id: "i2", reason: "ask" }] };
        out.next({ type: EventType.RUN_FINISHED, ...ids, outcome });
      }
      return out.complete();
    }
  }
}

/** How often the schedules came to what they are about. */
export const seen = {
  runs: 0,
  refused: 0,
  stops: 0,
  deaths: 0,
  deletions: 0,
  cuts: 0,
  repacked: 0,
  branches: 0,
  returns: 0,
  joined: 0,
};

/** Hosts of one log, their agents and readers, in one schedule. */
export class SeamWorld {
  readonly data = emptyMemoryData();
  readonly trace: string[] = [];
  private readonly random: Random;
  private readonly hosts: Host[] = [];
  private readonly agents: SeamAgent[] = [];
  private readonly readers: SeamReader[] = [];
  private readonly channels: SteppedChannels;
  private readonly locks = inProcessLockManager();
  /** Calls that must have been answered in the end, with their host. */
  private readonly calls: { readonly name: string; readonly host: Host; done: boolean; error?: unknown }[] = [];
  private readonly limits: LocalAgentRunnerOptions["limits"];
  private ids = 0;
  private runs = 0;
  private left: number;

  constructor(seed: number) {
    this.random = randomOf(seed);
    this.channels = new SteppedChannels(this.random, this.random() < 0.3);
    this.limits = this.random() < 0.25 ? { maxRunsPerThread: 2 } : {};
    this.left = 3 + Math.floor(this.random() * 8);
    this.addHost();
    this.addHost();
    const readers = 1 + Math.floor(this.random() * 3);
    for (let n = 0; n < readers; n++)
      this.readers.push(new SeamReader(`reader ${n}`, THREAD, this.data, pick(this.random, [3, 3, 0.05, 0.01])));
  }

  /** Plays the whole schedule; fails where a law is broken. @returns each sequence that a reader was handed */
  async play(): Promise<readonly (readonly BaseEvent[])[]> {
    for (let steps = 0; this.left > 0; steps++) {
      if (steps > ENDLESS) throw new Error("The schedule does not end");
      await this.take([...this.work(), ...this.moves(), ...this.time(0.15)]);
    }
    await this.windDown();
    const { head } = this.data.threads.get(THREAD) ?? {};
    expect(head?.live).toBeUndefined();
    expect(this.calls.filter(({ host, done }) => !host.dead && !done).map(({ name }) => name)).toEqual([]);
    expect(this.calls.flatMap(({ host, error }) => (host.dead ? [] : (error ?? [])))).toEqual([]);
    const sessions = this.readers.flatMap((reader) => reader.check());
    for (const reader of this.readers) reader.checkAtRest();
    return sessions;
  }

  close(): void {
    for (const reader of this.readers) reader.detach();
    for (const host of this.hosts) if (!host.dead) host.runner.letGo();
  }

  /** Every agent ends, every reader stays and reads on, until there is nothing left but time. */
  private async windDown(): Promise<void> {
    for (const reader of this.readers) reader.detach();
    let quiet = 0;
    let frames = -1;
    for (let steps = 0; quiet < LONG_MS; steps++) {
      if (steps > ENDLESS) throw new Error("Nobody comes to rest");
      for (const reader of this.readers) {
        const held = reader.cursor !== undefined && this.random() < 0.2;
        if (!reader.isAttached && reader.error === undefined)
          reader.attach(this.living().runner, { follow: true, ...(held && { holds: true }) });
      }
      const work = this.work();
      if (work.length > 0) {
        await this.take(work);
        continue;
      }
      const now = this.readers.reduce((sum, reader) => sum + reader.frames, 0);
      const clocks = this.hosts.filter(({ dead, clock }) => !dead && clock.isWaiting).map(({ clock }) => clock);
      if (clocks.length === 0) return;
      const slowest = clocks.reduce((one, other) => (other.elapsed() < one.elapsed() ? other : one));
      const before = slowest.elapsed();
      slowest.step();
      this.trace.push("time");
      await rest();
      const busy = this.data.live.size > 0 || now !== frames;
      frames = now;
      quiet = busy ? 0 : quiet + (slowest.elapsed() - before) / clocks.length;
    }
  }

  private async take(steps: readonly Step[]): Promise<void> {
    let at = this.random() * steps.reduce((sum, { weight }) => sum + weight, 0);
    const step = steps.find(({ weight }) => (at -= weight) < 0) ?? steps.at(-1);
    if (step === undefined) throw new Error("Nothing can happen any more");
    this.trace.push(step.name);
    step.run();
    await rest();
  }

  /** What goes on by itself. */
  private work(): Step[] {
    return [
      ...this.hosts.flatMap(({ name, store, dead }) => (dead ? [] : store.steps(name))),
      ...this.channels.steps(),
      ...this.agents
        .filter(({ isSpeaking }) => isSpeaking)
        .map((agent) => ({ name: "agent", weight: 2, run: () => agent.step(this.random) })),
      ...this.readers
        .filter(({ isAttached, waits, error }) => isAttached && !waits && error === undefined)
        .map((reader) => ({ name: `${reader.name} pulls`, weight: reader.pace, run: () => reader.pull() })),
    ];
  }

  private time(weight: number): Step[] {
    return this.hosts
      .filter(({ dead, clock }) => !dead && clock.isWaiting)
      .map(({ name, clock }) => ({ name: `${name} time`, weight, run: () => clock.step() }));
  }

  /** What somebody may do. */
  private moves(): Step[] {
    const reads = this.readers.map((reader): Step => {
      if (reader.isAttached) return { name: `${reader.name} leaves`, weight: 0.1, run: () => reader.detach() };
      return { name: `${reader.name} comes`, weight: 1, run: () => this.attach(reader) };
    });
    const move = (name: string, weight: number, run: () => void): Step => ({
      name,
      weight,
      run: () => {
        this.left--;
        run();
      },
    });
    return [
      ...reads,
      move("run", 0.5, () => this.run()),
      move("stop", 0.12, () => this.stop()),
      move("delete", 0.04, () => this.delete()),
      move("repack", 0.12, () => this.repack()),
      move("death", 0.06, () => this.die()),
    ];
  }

  private living = (): Host =>
    pick(
      this.random,
      this.hosts.filter(({ dead }) => !dead),
    );

  private addHost(): void {
    const name = `host ${this.hosts.length}`;
    const clock = new SteppedClock();
    const store = new SteppedStore(memoryRunStore(this.data));
    const runner = SeamRunner.on(
      {
        dbName: "seam",
        durability: "memory",
        locks: locksOf(this.locks),
        openChannel: this.channels.open,
        openStore: () => store.store,
        deleteStore: () => Promise.resolve(),
      },
      {
        clock,
        makeId: () => `id-${this.ids++}`,
        stopGraceMs: 500,
        limits: this.limits ?? {},
        onConcurrentRun: pick(this.random, ["throw", "throw", "supersede", "queue"] as const),
      },
    );
    const host = { name, runner, store, clock, dead: false };
    this.hosts.push(host);
    runner.evicted$.subscribe(() => seen.cuts++);
    this.call("open", host, runner.opened);
  }

  private call(name: string, host: Host, answer: Promise<unknown>): void {
    const call: (typeof this.calls)[number] = { name: `${host.name} ${name}`, host, done: false };
    this.calls.push(call);
    answer.then(
      () => (call.done = true),
      (error: unknown) => {
        call.done = true;
        const isTold =
          RunnerError.is(error, "thread-busy") ||
          RunnerError.is(error, "deleted") ||
          RunnerError.is(error, "cancelled") ||
          // It waited, and another run answered.
          RunnerError.is(error, "interrupts-open") ||
          // Another branch, or a deletion, was first.
          (RunnerError.is(error, "invalid-input") && error.details["field"] === "branchBefore");
        if (isTold) seen.refused++;
        else call.error = error;
      },
    );
  }

  private run(): void {
    const host = this.living();
    const runId = `r${this.runs++}`;
    const head = this.data.threads.get(THREAD)?.head;
    const known =
      head === undefined || head.deleted === true
        ? []
        : (truthAt(this.data, THREAD, { runIndex: head.activeRunIndex, seq: Infinity, epoch: 0 })?.messages ?? []);
    const branches = known.length > 0 && this.random() < 0.3;
    const kept = branches ? known.slice(0, Math.floor(this.random() * known.length)) : [];
    const branchBefore = branches ? known[kept.length]!.id : undefined;
    const messages = [...kept, { id: `${runId}-u`, role: "user" as const, content: `ask ${runId}` }];
    if (branches) seen.branches++;
    const agent = new SeamAgent(
      pick(this.random, runsToPlay()),
      pick(this.random, ["finished", "finished", "interrupt", "error", "complete"] as const),
      this.random() < 0.8,
    );
    this.agents.push(agent);
    const state = runId === "r0" ? { list: [1], count: 0, a: { b: { c: 1 } } } : {};
    // Answers what may be open.
    const resume = [{ interruptId: "i2", status: "resolved" as const }];
    const input = { threadId: THREAD, runId, messages, state, tools: [], context: [], forwardedProps: {}, resume };
    seen.runs++;
    try {
      const events$ = host.runner.run({
        threadId: THREAD,
        agent,
        input,
        ...(branchBefore !== undefined && { branchBefore }),
      });
      this.call(
        `run ${runId}`,
        host,
        new Promise<void>((resolve, reject) => {
          events$.subscribe({ error: reject, complete: resolve });
        }),
      );
    } catch (error) {
      if (!RunnerError.is(error, "thread-busy")) throw error;
    }
  }

  private attach(reader: SeamReader): void {
    if (reader.cursor !== undefined) seen.returns++;
    reader.attach(this.living().runner, {
      follow: this.random() < 0.5,
      holds: this.random() < 0.2,
      replay: this.random() < 0.3 ? "events" : "snapshot",
    });
  }

  private stop(): void {
    const host = this.living();
    seen.stops++;
    this.call("stop", host, host.runner.stop({ threadId: THREAD }));
  }

  private delete(): void {
    const host = this.living();
    seen.deletions++;
    this.call("delete", host, host.runner.clearThreads());
  }

  private repack(): void {
    const runs = [...(this.data.threads.get(THREAD)?.runs.values() ?? [])];
    if (runs.length === 0) return;
    const run = pick(this.random, runs);
    const before = run.chunks.length;
    // Some other host does it, in one step.
    void memoryRunStore(this.data).repack(THREAD, run.row.runIndex);
    seen.repacked++;
    if (run.chunks.length < before) seen.joined++;
  }

  private die(): void {
    const host = this.living();
    host.dead = true;
    seen.deaths++;
    host.store.die(this.random);
    host.runner.letGo();
    if (this.hosts.filter(({ dead }) => !dead).length < 2) this.addHost();
  }
}
