import { connectRuntime, RunnerError, type RuntimeConnection, type RuntimeStatus } from "ag-ui-local-runtime/client";

/** A tab that itself needs nothing of the browser that it could refuse, with one thread. */
class Plain {
  status: RuntimeStatus = { is: "connecting" };
  /** How `send` ended: "ok", or the error's code and message. */
  outcome: string | undefined;
  private readonly runtime: RuntimeConnection;
  private readonly agent;

  /** @param name of its worker */
  constructor(name: string) {
    this.runtime = connectRuntime({
      hosts: {
        shared: () => new SharedWorker(new URL("./plain.worker.ts", import.meta.url), { type: "module", name }),
        dedicated: () => new Worker(new URL("./plain.worker.ts", import.meta.url), { type: "module", name }),
      },
    });
    this.runtime.status$.subscribe((status) => (this.status = status));
    this.agent = this.runtime.agent("echo", { threadId: "thread" });
  }

  /** Sends a message and runs the agent, to the end of the run. */
  send(id: string): void {
    this.agent.addMessage({ id, role: "user", content: `This is ${id}` });
    void this.agent.runAgent({ runId: `run-${id}` }).then(
      () => (this.outcome = "ok"),
      (error: unknown) =>
        (this.outcome = RunnerError.is(error) ? `${error.code}: ${error.message}` : `untyped: ${String(error)}`),
    );
  }

  stop(): void {
    this.agent.abortRun();
  }

  /** Contents of all messages. */
  messages(): string[] {
    return this.agent.messages.map(({ content }) => String(content));
  }
}

declare global {
  interface Window {
    plain: Plain;
  }
}

window.plain = new Plain(new URLSearchParams(location.search).get("worker") ?? "plain");
