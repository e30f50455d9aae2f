import type { AbstractAgent, BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { Observable } from "rxjs";
import { randomId } from "../platform/ids.js";
import type { AgentRunner, AgentRunnerRunRequest } from "../run/contract.js";
import { expectThat } from "./expect.js";
import type { Patience } from "./patience.js";
import { Recording } from "./recording.js";
import { mustBeValid } from "./view.js";

/** How the kit gets runners and runs; see the options of `describeAgentRunner`. */
export interface RunnerUnderTest {
  create(): AgentRunner | Promise<AgentRunner>;
  destroy?(runner: AgentRunner): void | Promise<void>;
  crash?(runner: AgentRunner): void | Promise<void>;
  reopen?(runner: AgentRunner): AgentRunner | Promise<AgentRunner>;
  run?(runner: AgentRunner, request: AgentRunnerRunRequest): Observable<BaseEvent>;
}

/** How often the kit checks that a run has not ended. */
const STAYS = 20;

/** A short id, unique over all tests: some runners share one store per process. */
export const freshId = (of: string): string => `${of}-${randomId().slice(0, 8)}`;

/** A thread of one runner. */
export class Thread {
  constructor(
    private readonly bench: Bench,
    readonly runner: AgentRunner,
    readonly threadId: string,
  ) {}

  /** The same thread through another runner. */
  through(runner: AgentRunner): Thread {
    return new Thread(this.bench, runner, this.threadId);
  }

  /** Calls `run` and records what its first subscriber receives. */
  run(agent: AbstractAgent, input: RunAgentInput): Recording {
    return new Recording(`run "${input.runId}"`, this.bench.patience, () => this.start(agent, input));
  }

  /** Calls `run` and subscribes to nothing. */
  start(agent: AbstractAgent, input: RunAgentInput): Observable<BaseEvent> {
    // As CopilotKit's handlers do before they pass an agent on.
    agent.threadId = input.threadId;
    agent.messages = structuredClone(input.messages);
    agent.state = structuredClone(input.state);
    const request: AgentRunnerRunRequest = { threadId: this.threadId, agent, input };
    return this.bench.subject.run?.(this.runner, request) ?? this.runner.run(request);
  }

  connect(name = `connect to thread "${this.threadId}"`): Recording {
    return new Recording(name, this.bench.patience, () => this.runner.connect({ threadId: this.threadId }));
  }

  /** Everything that `connect` emits until it completes; fails unless the verifier accepts it. */
  async replay(): Promise<BaseEvent[]> {
    const name = `the replay of thread "${this.threadId}"`;
    const events = await this.connect(name).all();
    mustBeValid(name, events);
    return events;
  }

  isRunning(): Promise<boolean> {
    const { threadId } = this;
    return this.bench.patience.within(this.runner.isRunning({ threadId }), "isRunning() answers");
  }

  /** The result of `stop`; fails if there is none in time. */
  stop(runId?: string): Promise<boolean | undefined> {
    const { threadId } = this;
    const asked = this.runner.stop({ threadId, ...(runId !== undefined && { runId }) });
    return this.bench.patience.within(asked, "stop() answers");
  }

  async mustBeRunning(): Promise<void> {
    await this.bench.patience.until(() => this.isRunning(), `isRunning() says true for thread "${this.threadId}"`);
  }

  /** Asks repeatedly, so that work in the background gets its time. */
  async mustStayRunning(why: string): Promise<void> {
    for (let asked = 0; asked < STAYS; asked++) expectThat(await this.isRunning(), why, "isRunning() says false");
  }

  /** At once: a follow-up run must be possible as soon as the end is seen. */
  async mustBeFree(when: string): Promise<void> {
    expectThat(!(await this.isRunning()), `isRunning() must be false ${when}`);
  }
}

/** What a case works with: an empty runner, and ways to wait. */
export class Bench {
  private readonly alive = new Set<AgentRunner>();

  private constructor(
    readonly subject: RunnerUnderTest,
    readonly patience: Patience,
    readonly runner: AgentRunner,
  ) {
    this.alive.add(runner);
  }

  static async open(subject: RunnerUnderTest, patience: Patience): Promise<Bench> {
    return new Bench(subject, patience, await patience.within(Promise.resolve(subject.create()), "create() resolves"));
  }

  /** Records what one subscriber of these events receives. */
  record(name: string, open: () => Observable<BaseEvent>): Recording {
    return new Recording(name, this.patience, open);
  }

  /** A new thread. */
  thread(): Thread {
    return new Thread(this, this.runner, freshId("thread"));
  }

  /** A second runner on the same store. */
  async reopen(of: AgentRunner = this.runner): Promise<AgentRunner> {
    const { reopen } = this.subject;
    expectThat(reopen !== undefined, "this case needs the option reopen");
    const runner = await this.patience.within(Promise.resolve(reopen(of)), "reopen() resolves");
    this.alive.add(runner);
    return runner;
  }

  /** Ends a runner as abruptly as the options allow. */
  async crash(runner: AgentRunner): Promise<void> {
    const { crash } = this.subject;
    if (crash === undefined) return this.destroy(runner);
    await this.patience.within(Promise.resolve(crash(runner)), "crash() resolves");
  }

  async close(): Promise<void> {
    await Promise.all([...this.alive].map((runner) => this.destroy(runner)));
  }

  private async destroy(runner: AgentRunner): Promise<void> {
    if (!this.alive.delete(runner)) return;
    await this.patience.within(Promise.resolve(this.subject.destroy?.(runner)), "destroy() resolves");
  }
}
