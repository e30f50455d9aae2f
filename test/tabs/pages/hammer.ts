import { type BaseEvent, type Message, verifyEvents } from "@ag-ui/client";
import { IndexedDBAgentRunner, RunnerError } from "ag-ui-local-runtime";
import type { LocalAgent } from "ag-ui-local-runtime/client";
import { lastValueFrom } from "rxjs";
import { pick, randomFrom } from "../hammer-random.js";
import type { LoggedRun, Shown } from "../soak/check.js";

/** One run that a tab asked for. */
export interface Attempt {
  readonly runId: string;
  /** How that ended for the tab: "ok", or the error's code and message; absent: not yet. */
  outcome?: string;
}

/** Threads as they stand in the log. */
export interface Log {
  readonly runs: readonly LoggedRun[];
  readonly shown: readonly Shown[];
}

interface Order {
  readonly n: number;
  readonly everyMs: number;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const questionOf = (runId: string): string => `question-${runId}`;
/** Whole messages: also their ids and order are the same everywhere. */
const shownAs = (messages: readonly Message[]): string[] => messages.map((message) => JSON.stringify(message));

/** Hammers threads that all tabs share: runs, stops and follows them, all at once. */
class Hammer {
  readonly attempts: Attempt[] = [];
  private striking = false;
  private readonly followers = new Map<string, LocalAgent>();
  /** Threads that their follower itself runs just now. */
  private readonly running = new Set<string>();

  follow(threadIds: readonly string[]): void {
    for (const threadId of threadIds) {
      const agent = window.lab.runtime.agent("noted", { threadId });
      agent.follow();
      this.followers.set(threadId, agent);
    }
  }

  /** Begins to do what comes from `seed`, for so long, in ms. */
  start(seed: number, ms: number): void {
    this.striking = true;
    void this.strike(seed, ms).finally(() => (this.striking = false));
  }

  /** Nothing is asked for any more, and each attempt has its outcome. */
  isDone(): boolean {
    return !this.striking && this.attempts.every(({ outcome }) => outcome !== undefined);
  }

  /** What the followers show. */
  shown(load: string): Shown[] {
    return [...this.followers].map(([threadId, { messages }]) => ({ load, threadId, messages: shownAs(messages) }));
  }

  /** All that the log has of the threads, read by a runner of this page. Rejects where it is no AG-UI sequence (L3). */
  async log(dbName: string): Promise<Log> {
    const runner = new IndexedDBAgentRunner({ dbName });
    try {
      const runs: LoggedRun[] = [];
      const shown: Shown[] = [];
      for (const threadId of this.followers.keys()) {
        runs.push(...(await runsOf(runner, threadId)));
        shown.push({ load: "the log", threadId, messages: shownAs(await runner.getThreadMessages(threadId)) });
        await lastValueFrom(runner.connect({ threadId }).pipe(verifyEvents()));
      }
      return { runs, shown };
    } finally {
      await runner.close();
    }
  }

  private async strike(seed: number, ms: number): Promise<void> {
    const random = randomFrom(seed);
    const threadIds = [...this.followers.keys()];
    const until = performance.now() + ms;
    while (performance.now() < until) {
      const threadId = pick(random, threadIds);
      const what = random();
      const order: Order = { n: 1 + Math.floor(random() * 12), everyMs: Math.floor(random() * 12) };
      const runId = `run-${seed}-${this.attempts.length}`;
      if (what < 0.15) this.followers.get(threadId)?.abortRun();
      else {
        const run = what < 0.5 ? this.runFollower(threadId, runId, order) : this.runOther(threadId, runId, order);
        if (random() < 0.4) await run;
      }
      await pause(random() * 40);
    }
  }

  /** On the agent that follows the thread. What is refused it takes back, because the tabs are compared. */
  private async runFollower(threadId: string, runId: string, order: Order): Promise<void> {
    const agent = this.followers.get(threadId);
    if (agent === undefined || this.running.has(threadId)) return;
    this.running.add(threadId);
    const outcome = await this.attempt(agent, runId, order);
    if (outcome !== "ok") agent.setMessages(agent.messages.filter(({ id }) => id !== questionOf(runId)));
    this.running.delete(threadId);
  }

  /** On an agent that knows nothing of the thread, so that only a host can refuse it. */
  private async runOther(threadId: string, runId: string, order: Order): Promise<void> {
    await this.attempt(window.lab.runtime.agent("noted", { threadId }), runId, order);
  }

  private async attempt(agent: LocalAgent, runId: string, order: Order): Promise<string> {
    const attempt: Attempt = { runId };
    this.attempts.push(attempt);
    agent.addMessage({ id: questionOf(runId), role: "user", content: JSON.stringify(order) });
    attempt.outcome = await agent.runAgent({ runId }).then(() => "ok", nameOf);
    return attempt.outcome;
  }
}

async function runsOf(runner: IndexedDBAgentRunner, threadId: string): Promise<LoggedRun[]> {
  const found: LoggedRun[] = [];
  for (let before: number | undefined; ; before = found.at(-1)?.runIndex) {
    const page = await runner.listRuns(threadId, { limit: 500, ...(before !== undefined && { before }) });
    if (page.length === 0) return found;
    for (const { runId, runIndex, status } of page) {
      const events = await runner.getRunEvents(runId, { threadId });
      found.push({ threadId, runId, runIndex, status, ordered: orderOf(events[0]?.event).n, events });
    }
  }
}

/** What was asked of the run that this event begins. */
function orderOf(started: (BaseEvent & { input?: { messages?: Message[] } }) | undefined): Order {
  return JSON.parse(String(started?.input?.messages?.at(-1)?.content)) as Order;
}

function nameOf(error: unknown): string {
  return RunnerError.is(error) ? `${error.code}: ${error.message}` : String(error);
}

declare global {
  interface Window {
    hammer: Hammer;
  }
}

window.hammer = new Hammer();
