import { connectRuntime, type LocalAgent, type RunSummary, type ThreadRun } from "ag-ui-local-runtime/client";
import { LAB_CHANNEL, type LabOrder } from "./lab-orders.js";
import { executions, type Execution } from "./recovery-log.js";
import { workerName } from "./worker-name.js";

/** How the thread stands in this tab. */
export interface RecoveryView {
  readonly run: ThreadRun;
  /** "role: content", or "role toolCallId". */
  readonly said: readonly string[];
  /** Of each broken or errored run as it was told: what became of it. */
  readonly recoveries: readonly string[];
}

/** A tab that follows a thread. Query: `worker` (database and host), `thread`, `agent`. */
class RecoveryPage {
  private readonly worker: string;
  private readonly agent: LocalAgent;
  private readonly runtime;
  private readonly recoveries: string[] = [];
  private run: ThreadRun = { is: "idle" };
  isReady = false;

  constructor(query: URLSearchParams) {
    const parameter = (name: string): string => query.get(name) ?? "";
    this.worker = parameter("worker");
    this.runtime = connectRuntime({
      hosts: {
        shared: (name) =>
          new SharedWorker(new URL("./recovery.worker.ts", import.meta.url), {
            type: "module",
            name: workerName(this.worker, name),
          }),
      },
    });
    this.agent = this.runtime.agent(parameter("agent"), { threadId: parameter("thread") });
    this.agent.run$.subscribe((run) => {
      this.run = run;
      const recovery = run.is === "idle" ? run.last?.recovery : undefined;
      if (recovery !== undefined) this.recoveries.push(recovery.is);
    });
    this.agent.follow();
    void this.agent.connectAgent().then(() => (this.isReady = true));
  }

  view(): RecoveryView {
    const said = this.agent.messages.map((message) =>
      message.role === "tool" ? `tool ${message.toolCallId}` : `${message.role}: ${String(message.content ?? "")}`,
    );
    return { run: this.run, said, recoveries: this.recoveries };
  }

  /** Starts a run, without waiting for its end. */
  ask(content: string, agentId?: string): void {
    const id = `u${this.agent.messages.length}`;
    const agent = agentId === undefined ? this.agent : this.runtime.agent(agentId, { threadId: this.agent.threadId });
    agent.addMessage({ id, role: "user", content });
    // It may be broken and go on without this call.
    void agent.runAgent().catch(() => undefined);
  }

  /** Ends the worker from within, as a crash would. */
  endHost(): void {
    const order: LabOrder = { end: this.worker };
    new BroadcastChannel(LAB_CHANNEL).postMessage(order);
  }

  async executed(): Promise<Execution[]> {
    const all = await (await executions(this.worker)).getAll("all");
    return all.filter(({ thread }) => thread === this.agent.threadId);
  }

  /** The thread's runs, oldest first. */
  async runs(): Promise<readonly RunSummary[]> {
    return (await this.runtime.runner().listRuns(this.agent.threadId)).toReversed();
  }

  /** Ids of the tool calls in the log. */
  async calls(): Promise<readonly string[]> {
    const messages = await this.runtime.runner().getThreadMessages(this.agent.threadId);
    return messages
      .flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
      .map(({ id }) => id);
  }

  /** What a reader finds who has seen nothing. */
  async afresh(): Promise<readonly string[]> {
    const messages = await this.runtime.runner().getThreadMessages(this.agent.threadId);
    return messages.map((message) =>
      message.role === "tool" ? `tool ${message.toolCallId}` : `${message.role}: ${String(message.content ?? "")}`,
    );
  }
}

declare global {
  interface Window {
    recovery: RecoveryPage;
  }
}
window.recovery = new RecoveryPage(new URLSearchParams(location.search));
