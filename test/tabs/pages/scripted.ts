import type { BaseEvent, RunErrorEvent, RunFinishedEvent } from "@ag-ui/client";
import {
  connectRuntime,
  LocalAgent,
  RunnerError,
  type RuntimeConnection,
  type RuntimeStatus,
  type ThreadRun,
} from "ag-ui-local-runtime/client";

/** How a call ended, as data. */
export type Outcome =
  { ok: true } | { ok: false; name: string; code: string | undefined; message: string; runId: string | undefined };

/** What a tab sees of a thread. */
export interface View {
  run: ThreadRun;
  /** Text of the last assistant message. */
  text: string;
  /** Contents of all messages with their roles, in order. */
  messages: string[];
  /** Terminal events since the page was loaded. */
  ends: { type: string; outcome?: string; code?: string; message?: string }[];
  outcomes: Outcome[];
}

interface Opened {
  agent: LocalAgent;
  run: ThreadRun;
  ends: View["ends"];
  outcomes: Outcome[];
}

const outcomeOf = async (call: Promise<unknown>): Promise<Outcome> => {
  try {
    await call;
    return { ok: true };
  } catch (error) {
    const known = RunnerError.is(error) ? error : undefined;
    const { name, message } = error as Error;
    return { ok: false, name, message, code: known?.code, runId: known?.details.runId };
  }
};

/** Drives the client's API for a test, which has only data to give and take. */
class Lab {
  readonly connectRuntime = connectRuntime;
  readonly LocalAgent = LocalAgent;
  readonly RunnerError = RunnerError;
  readonly runtime: RuntimeConnection;
  status: RuntimeStatus = { is: "connecting" };
  private readonly opened = new Map<string, Opened>();

  constructor(worker: string) {
    this.runtime = this.connect(worker);
    this.runtime.status$.subscribe((status) => (this.status = status));
  }

  /** @param worker its name: "<database>" or "<database>#<anything>" */
  connect(worker: string): RuntimeConnection {
    return connectRuntime({
      hosts: {
        shared: () =>
          new SharedWorker(new URL("./scripted.worker.ts", import.meta.url), {
            type: "module",
            name: worker,
            extendedLifetime: true,
          }),
        dedicated: () => new Worker(new URL("./scripted.worker.ts", import.meta.url), { type: "module", name: worker }),
      },
    });
  }

  /** An agent of the thread, which follows it from now on or sees its own runs only. */
  open(agentId: string, threadId: string, follow: boolean): void {
    const agent = this.runtime.agent(agentId, { threadId });
    const opened: Opened = { agent, run: { is: "idle" }, ends: [], outcomes: [] };
    this.opened.set(threadId, opened);
    agent.subscribe({
      onEvent: ({ event }) => {
        const end = endOf(event);
        if (end) opened.ends.push(end);
      },
    });
    agent.run$.subscribe((run) => (opened.run = run));
    if (follow) agent.follow();
  }

  view(threadId: string): View {
    const { agent, run, ends, outcomes } = this.get(threadId);
    const contentOf = ({ content }: { content?: unknown }): string => (typeof content === "string" ? content : "");
    return {
      run,
      ends,
      outcomes,
      messages: agent.messages.map((message) => `${message.role}: ${contentOf(message)}`),
      text: contentOf(agent.messages.findLast(({ role }) => role === "assistant") ?? {}),
    };
  }

  /** Sends a message and runs the agent to the end of the run. */
  async run(threadId: string, content: unknown, runId: string = crypto.randomUUID()): Promise<Outcome> {
    const { agent, outcomes } = this.get(threadId);
    const text = typeof content === "string" ? content : JSON.stringify(content);
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
    const outcome = await outcomeOf(agent.runAgent({ runId }));
    outcomes.push(outcome);
    return outcome;
  }

  /** The same, and does not wait; how it ended is in the view's `outcomes`. */
  start(threadId: string, content: unknown, runId?: string): void {
    void this.run(threadId, content, runId);
  }

  stop(threadId: string): void {
    this.get(threadId).agent.abortRun();
  }

  /** As `run`, on an agent that follows nothing, so that only the host can refuse it. */
  async runUnseen(agentId: string, threadId: string, content: unknown): Promise<Outcome> {
    return outcomeOf(
      (async () => {
        const agent = this.runtime.agent(agentId, { threadId });
        agent.addMessage({ id: crypto.randomUUID(), role: "user", content: JSON.stringify(content) });
        await agent.runAgent();
      })(),
    );
  }

  private get(threadId: string): Opened {
    const opened = this.opened.get(threadId);
    if (!opened) throw new Error(`lab.open("…", "${threadId}") comes first`);
    return opened;
  }
}

function endOf(event: BaseEvent): View["ends"][number] | undefined {
  if (event.type === "RUN_FINISHED") {
    const { outcome } = event as RunFinishedEvent;
    return { type: event.type, ...(outcome && { outcome: outcome.type }) };
  }
  if (event.type === "RUN_ERROR") {
    const { code, message } = event as RunErrorEvent;
    return { type: event.type, message, ...(code !== undefined && { code }) };
  }
  return undefined;
}

declare global {
  interface Window {
    lab: Lab;
  }
}

window.lab = new Lab(new URLSearchParams(location.search).get("worker") ?? "scripted");
