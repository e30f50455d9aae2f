import { connectRuntime, RunnerError, type RuntimeConnection, type RuntimeStatus } from "ag-ui-local-runtime/client";
import { ThreadStore } from "../../../src/client/store/thread-store.js";
import type { ThreadSnapshot } from "../../../src/client/store/thread-snapshot.js";
import type { Plan } from "../chaos/plan.js";
import type { Deposition } from "../chaos/witness.js";
import type { Shown } from "../soak/check.js";
import { readLog, type ReadLog, refusals, replayed, shownAs } from "./read-log.js";
import { workerName } from "./worker-name.js";

/** How the page stands: everything that should come to rest has. */
export interface ChaosRest {
  readonly status: RuntimeStatus["is"];
  /** Messages that were given to the page, and whose sending has not settled. */
  readonly sending: number;
  readonly threads: Readonly<Record<string, Pick<ThreadSnapshot, "status" | "run" | "waiting">>>;
}

const PATIENCE_MS = 60_000;

/** A tab that shows all threads and sends what the suite types. */
class Chaos {
  private readonly load = crypto.randomUUID().slice(0, 8);
  private readonly dbName: string;
  private readonly runtime: RuntimeConnection;
  private readonly threads = new Map<string, ThreadStore>();
  private status: RuntimeStatus["is"] = "connecting";
  private sending = 0;
  private told = Promise.resolve();

  constructor(private readonly parameters: URLSearchParams) {
    const worker = this.parameter("worker");
    this.dbName = worker.split("#")[0]!;
    this.runtime = connectRuntime({
      // On a busy machine a start takes long; what is never answered fails all the same.
      startTimeoutMs: PATIENCE_MS,
      callTimeoutMs: PATIENCE_MS,
      hosts: {
        shared: (name) =>
          new SharedWorker(new URL("./chaos.worker.ts", import.meta.url), {
            type: "module",
            name: workerName(worker, name),
            extendedLifetime: true,
          }),
      },
    });
    this.runtime.status$.subscribe(({ is }) => (this.status = is));
    for (const threadId of this.threadIds) {
      const store = new ThreadStore(this.runtime, { agentId: "planned", threadId });
      store.subscribe(() => undefined);
      this.threads.set(threadId, store);
    }
  }

  /** Sends a message that waits for its turn. */
  type(threadId: string, plan: Plan): void {
    void this.send(threadId, plan);
  }

  rest(): ChaosRest {
    const threads = Object.fromEntries(
      [...this.threads].map(([threadId, store]) => {
        const { status, run, waiting } = store.getSnapshot();
        return [threadId, { status, run, waiting }];
      }),
    );
    return { status: this.status, sending: this.sending, threads };
  }

  shown(): Shown[] {
    return [...this.threads].map(([threadId, store]) => ({
      load: this.load,
      threadId,
      messages: shownAs(store.getSnapshot().messages),
    }));
  }

  /**
   * What a person does who is shown "Run again".
   *
   * @returns the message that is answered again, and "ok" or why it is not
   */
  async runAgain(threadId: string): Promise<{ messageId: string; outcome: string }> {
    const store = this.store(threadId);
    const messageId = store.getSnapshot().messages.findLast(({ role }) => role === "user")?.id ?? "";
    return { messageId, outcome: await store.retry().then(() => "ok", nameOf) };
  }

  /** Nothing runs and nothing waits. A tab may be told that a run waits no more before it is told that it runs. */
  async isLogAtRest(): Promise<boolean> {
    const waiting = await this.waitingInLog();
    const { runs } = await this.readLog();
    // What broke in between waits again.
    return waiting + (await this.waitingInLog()) === 0 && runs.every(({ status }) => status !== "running");
  }

  private async waitingInLog(): Promise<number> {
    const lists = await Promise.all(this.threadIds.map((threadId) => this.runtime.waiting.list(threadId)));
    return lists.flat().length;
  }

  readLog(): Promise<ReadLog> {
    return readLog(this.dbName, this.threadIds, {});
  }

  refusals(): Promise<string[]> {
    return refusals(this.dbName, this.threadIds);
  }

  replayed(): Promise<Shown[]> {
    return replayed(this.dbName, this.threadIds);
  }

  private get threadIds(): string[] {
    return this.parameter("threads").split(",");
  }

  private async send(threadId: string, plan: Plan): Promise<void> {
    const { id: messageId } = plan;
    this.sending++;
    try {
      await this.tell({ is: "typed", threadId, messageId, load: this.load });
      await this.store(threadId).send(JSON.stringify(plan), { messageId, onBusy: "queue", whenOffline: "wait" });
      await this.tell({ is: "taken", messageId });
    } catch (error) {
      await this.tell({ is: "refused", messageId, code: nameOf(error) });
    } finally {
      this.sending--;
    }
  }

  /** One after the other, so that they arrive in order. */
  private tell(said: Deposition): Promise<void> {
    this.told = this.told.then(async () => {
      await fetch(this.parameter("witness"), { method: "POST", body: JSON.stringify(said) });
    });
    return this.told;
  }

  private parameter(name: string): string {
    const value = this.parameters.get(name);
    if (value === null) throw new Error(`the address must say ${name}`);
    return value;
  }

  private store(threadId: string): ThreadStore {
    const store = this.threads.get(threadId);
    if (!store) throw new Error(`there is no ${threadId}`);
    return store;
  }
}

const nameOf = (error: unknown): string =>
  RunnerError.is(error) ? `${error.code} ${JSON.stringify(error.details)}` : `untyped: ${String(error)}`;

declare global {
  interface Window {
    chaos: Chaos;
  }
}

window.chaos = new Chaos(new URLSearchParams(location.search));
