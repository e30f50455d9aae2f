import {
  connectRuntime,
  FrontendTools,
  RunnerError,
  ThreadStore,
  type RuntimeConnection,
  type ShownToolCall,
  type ThreadRun,
} from "ag-ui-local-runtime/client";
import { openDB } from "idb";
import { workerName } from "./worker-name.js";

/** How the thread stands in this tab. */
export interface ToolsView {
  readonly isReady: boolean;
  readonly run: ThreadRun;
  readonly calls: readonly ShownToolCall[];
  /** Ids of the open interrupts. */
  readonly interrupts: readonly string[];
  readonly messages: readonly string[];
}

/** A handler began to run a call. */
export interface Execution {
  readonly toolCallId: string;
  readonly name: string;
  readonly thread: string;
  /** The load of the page that it ran in, and when (ms). */
  readonly load: string;
  readonly at: number;
}

/**
 * A tab that shows a thread and offers tools: `a` may run twice, `b` must not, `c` is answered by a person.
 *
 * Query: `worker` (database and host), `thread`, `offers` ("ab"), `ms` (how long a handler takes).
 */
const LOAD = crypto.randomUUID().slice(0, 8);

class ToolsPage {
  private readonly runtime: RuntimeConnection;
  private readonly store: ThreadStore;
  private readonly executions;

  constructor(query: URLSearchParams) {
    const parameter = (name: string): string => query.get(name) ?? "";
    const [worker, thread] = [parameter("worker"), parameter("thread")];
    this.executions = openDB<{ all: { key: number; value: Execution } }>(`${worker.split("#")[0]!}.executions`, 1, {
      upgrade: (db) => void db.createObjectStore("all", { autoIncrement: true }),
    });
    this.runtime = connectRuntime({
      hosts: {
        shared: (name) =>
          new SharedWorker(new URL("./tools.worker.ts", import.meta.url), {
            type: "module",
            name: workerName(worker, name),
            extendedLifetime: true,
          }),
      },
    });
    const tools = new FrontendTools();
    for (const name of parameter("offers")) {
      tools.add({
        name,
        description: name,
        parameters: { type: "object" },
        repeatable: name !== "b",
        ...(name !== "c" && {
          handler: async (_args, { toolCallId }) => {
            await (await this.executions).add("all", { toolCallId, name, thread, load: LOAD, at: Date.now() });
            await new Promise((resolve) => setTimeout(resolve, Number(parameter("ms"))));
            return `${name} done`;
          },
        }),
      });
    }
    this.store = new ThreadStore(this.runtime, { agentId: "caller", threadId: thread, tools });
    this.store.subscribe(() => undefined);
  }

  view(): ToolsView {
    const { status, run, toolCalls, messages, interrupts } = this.store.getSnapshot();
    const said = messages.map(
      (message) =>
        `${message.role}${message.role === "tool" ? ` ${message.toolCallId}` : ""}: ${String(message.content ?? "")}`,
    );
    const open = interrupts.map(({ id }) => id);
    return { isReady: status === "ready", run, calls: toolCalls, messages: said, interrupts: open };
  }

  /** @returns "ok", or the code of the RunnerError */
  ask(tools: string): Promise<string> {
    return outcome(this.store.send(tools));
  }

  /** Answers what the thread waits for. @returns as {@link ask}; "none" if it waits for nothing */
  respond(payload: string): Promise<string> {
    const [interrupt] = this.store.getSnapshot().interrupts;
    if (interrupt === undefined) return Promise.resolve("none");
    return outcome(this.store.respond({ interruptId: interrupt.id, status: "resolved", payload }));
  }

  answer(toolCallId: string): Promise<string> {
    return outcome(this.store.answerToolCall(toolCallId, "by hand"));
  }

  runAgain(toolCallId: string): Promise<string> {
    return outcome(this.store.runToolCallAgain(toolCallId));
  }

  async executed(): Promise<Execution[]> {
    return (await this.executions).getAll("all");
  }

  /** The thread's runs, newest first. */
  async runs(): Promise<{ readonly runId: string; readonly status: string }[]> {
    const all = await this.runtime.runner().listRuns(this.store.threadId);
    return all.map(({ runId, status }) => ({ runId, status }));
  }
}

const outcome = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "ok",
    (error: unknown) => (RunnerError.is(error) ? error.code : String(error)),
  );

declare global {
  interface Window {
    tools: ToolsPage;
  }
}
window.tools = new ToolsPage(new URLSearchParams(location.search));
