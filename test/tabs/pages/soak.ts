import type { BaseEvent } from "@ag-ui/client";
import { workerName } from "./worker-name.js";
import { EventType } from "@ag-ui/core";
import {
  connectRuntime,
  type LocalAgent,
  RunnerError,
  type RuntimeConnection,
  type RuntimeStatus,
  type ThreadRun,
} from "ag-ui-local-runtime/client";
import type { Piece, Shown } from "../soak/check.js";
import { readLog, type ReadLog, refusals, shownAs } from "./read-log.js";
import { type Note, Notes } from "./scripted-notes.js";
import { piecesOf, Reporter } from "./soak-report.js";

/** How a run that this page asked for ended for it, and how often: "ok", or the error's code. */
export type Outcomes = Record<string, number>;

/** What an agent is asked for: so many numbers, one in so many ms. */
export interface Order {
  readonly n: number;
  readonly everyMs: number;
}

/** How the page stands: everything that should come to rest has. */
export interface Rest {
  readonly status: RuntimeStatus["is"];
  /** Why there is no host, where there is none. */
  readonly failure?: (RuntimeStatus & { readonly is: "failed" })["error"];
  /** Calls of `runAgent` that have not settled. */
  readonly pending: number;
  /** Everything that the page was told has been reported. */
  readonly reported: boolean;
  readonly runs: Readonly<Record<string, ThreadRun>>;
}

interface Followed {
  readonly agent: LocalAgent;
  run: ThreadRun;
}

/** A tab that follows all threads, reports what it is told and does what the soak asks of it. */
class Soak {
  /** Of this load of the page. */
  readonly load: string;
  private readonly dbName: string;
  private readonly runtime: RuntimeConnection;
  private readonly reporter: Reporter;
  private readonly threads = new Map<string, Followed>();
  private readonly outcomes: Outcomes = {};
  private status: RuntimeStatus = { is: "connecting" };
  private pending = 0;

  constructor(private readonly parameters: URLSearchParams) {
    const worker = this.parameter("worker");
    this.dbName = worker.split("#")[0]!;
    this.load = `${this.parameter("tab")} (${crypto.randomUUID().slice(0, 8)})`;
    this.reporter = new Reporter(this.parameter("report"));
    this.runtime = connectRuntime({
      hosts: {
        shared: (name) =>
          new SharedWorker(new URL("./scripted.worker.ts", import.meta.url), {
            type: "module",
            name: workerName(worker, name),
            extendedLifetime: true,
          }),
      },
    });
    this.runtime.status$.subscribe((status) => (this.status = status));
    for (const threadId of this.parameter("threads").split(",")) this.threads.set(threadId, this.follow(threadId));
  }

  /** @param fresh by an agent that knows nothing of the thread, else by the one that follows it */
  start(threadId: string, order: Order, runId: string, fresh: boolean): void {
    void this.run(threadId, order, runId, fresh);
  }

  /** The same to its end; where the thread is busy, again and again. Gives up after so long, in ms, with "no end". */
  async probe(threadId: string, order: Order, runId: string, fresh: boolean, limitMs: number): Promise<string> {
    let outcome = "no end";
    const until = performance.now() + limitMs;
    const late = new Promise<string>((resolve) => setTimeout(() => resolve("no end"), limitMs));
    do {
      outcome = await Promise.race([this.run(threadId, order, runId, fresh), late]);
      if (outcome === "thread-busy") await new Promise((resolve) => setTimeout(resolve, 50));
    } while (outcome === "thread-busy" && performance.now() < until);
    return outcome;
  }

  stop(threadId: string): void {
    this.followed(threadId).agent.abortRun();
  }

  rest(): Rest {
    const runs = Object.fromEntries([...this.threads].map(([threadId, { run }]) => [threadId, run]));
    const { status } = this;
    return {
      status: status.is,
      ...(status.is === "failed" && { failure: status.error }),
      pending: this.pending,
      reported: this.reporter.isDone(),
      runs,
    };
  }

  /** How runs ended since this was asked last. */
  takeOutcomes(): Outcomes {
    const taken = { ...this.outcomes };
    for (const outcome of Object.keys(taken)) delete this.outcomes[outcome];
    return taken;
  }

  shown(): Shown[] {
    const { load } = this;
    return [...this.threads].map(([threadId, { agent }]) => ({ load, threadId, messages: shownAs(agent.messages) }));
  }

  /** The log itself, past this tab's host: the runs after these indexes, and all messages. */
  readLog(after: Readonly<Record<string, number>>): Promise<ReadLog> {
    return readLog(this.dbName, [...this.threads.keys()], after);
  }

  /** Why the client's verifier refuses what a reader of the whole history is handed, thread by thread. */
  refusals(): Promise<string[]> {
    return refusals(this.dbName, [...this.threads.keys()]);
  }

  notes(): Promise<Note[]> {
    return new Notes(this.dbName).all();
  }

  private parameter(name: string): string {
    const value = this.parameters.get(name);
    if (value === null) throw new Error(`the address must say ${name}`);
    return value;
  }

  private followed(threadId: string): Followed {
    const followed = this.threads.get(threadId);
    if (!followed) throw new Error(`there is no ${threadId}`);
    return followed;
  }

  private follow(threadId: string): Followed {
    const agent = this.runtime.agent("noted", { threadId });
    const followed: Followed = { agent, run: { is: "idle" } };
    const add = (piece: Piece): void => this.reporter.add({ load: this.load, threadId, piece });
    let runId = "";
    agent.subscribe({
      onEvent({ event }) {
        if (event.type === EventType.RUN_STARTED) runId = (event as BaseEvent & { runId: string }).runId;
        for (const piece of piecesOf(event, runId)) add(piece);
      },
    });
    agent.run$.subscribe((run) => (followed.run = run));
    agent.follow();
    return followed;
  }

  private async run(threadId: string, order: Order, runId: string, fresh: boolean): Promise<string> {
    const agent = fresh ? this.runtime.agent("noted", { threadId }) : this.followed(threadId).agent;
    const id = `${runId}-order-${crypto.randomUUID()}`;
    this.pending++;
    const outcome = await (async () => {
      try {
        agent.addMessage({ id, role: "user", content: JSON.stringify(order) });
        await agent.runAgent({ runId });
        return "ok";
      } catch (error) {
        // What was refused is not in the thread, and the tabs are compared.
        if (RunnerError.is(error, "thread-busy")) agent.setMessages(agent.messages.filter((it) => it.id !== id));
        return RunnerError.is(error) ? error.code : `untyped: ${String(error)}`;
      }
    })();
    this.pending--;
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
    return outcome;
  }
}

declare global {
  interface Window {
    soak: Soak;
  }
}

window.soak = new Soak(new URLSearchParams(location.search));
