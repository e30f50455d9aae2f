import { IndexedDBCheckpointStore } from "ag-ui-local-runtime/checkpoint";
import { answerServiceWorker, connectRuntime, RunnerError, type RuntimeStatus } from "ag-ui-local-runtime/client";
import { BASE } from "./fetch-base.js";
import { useServiceWorker } from "./use-service-worker.js";

/** A tab of one user, as its address says: `user`, and `worker` where its SharedWorker is not to be called as the user. */
class Users {
  status: RuntimeStatus = { is: "connecting" };
  /** How often a SharedWorker was asked for. */
  starts = 0;
  private readonly runtime;

  constructor(
    private readonly user: string,
    worker: string | null,
  ) {
    this.runtime = connectRuntime({
      user,
      hosts: {
        shared: (name) => {
          this.starts++;
          return new SharedWorker(new URL("./users.worker.ts", import.meta.url), {
            type: "module",
            name: worker ?? name,
          });
        },
      },
    });
    this.runtime.status$.subscribe((status) => (this.status = status));
  }

  /** Starts a run, or lets it wait where the thread has one. */
  start(threadId: string, runId: string): void {
    const agent = this.runtime.agent("held", { threadId });
    agent.addMessage({ id: `${runId}-u`, role: "user", content: `asks ${this.user}` });
    agent.runAgent({ runId, onBusy: "queue" }).catch(() => undefined);
  }

  stop(threadId: string, runId: string) {
    return this.runtime.runner().stop({ threadId, runId });
  }

  /** All that the tab can find of this thread, or how the first call failed. */
  async seen(threadId: string) {
    try {
      const { threads, waiting } = this.runtime;
      const checkpoints = await new IndexedDBCheckpointStore({ user: this.user }).list("graph");
      return {
        threads: (await threads.list()).map(({ threadId: id, live }) => [id, live?.runId]),
        messages: (await threads.messages(threadId)).messages.map(({ content }) => content),
        runs: (await this.runtime.runner().listRuns(threadId)).map(({ runId, status }) => [runId, status]),
        waiting: (await waiting.list()).map(({ runId }) => runId),
        checkpoints: checkpoints.map(({ id }) => id),
      };
    } catch (error) {
      return RunnerError.is(error) ? `${error.code}: ${error.message}` : `untyped: ${String(error)}`;
    }
  }

  /** @returns status and body */
  async fetched(path: string): Promise<[number, string]> {
    const response = await this.runtime.fetch(path);
    return [response.status, await response.text()];
  }

  /** The service worker relays requests of this page from then on. */
  async answer(): Promise<void> {
    answerServiceWorker(this.runtime);
    await useServiceWorker();
  }

  readonly useServiceWorker = useServiceWorker;

  /** As {@link fetched}, by way of the service worker. */
  async relayed(path: string): Promise<[number, string]> {
    const response = await fetch(`${BASE}${path}`);
    return [response.status, await response.text()];
  }

  close(): Promise<void> {
    return this.runtime.close();
  }
}

declare global {
  interface Window {
    users: Users;
  }
}

const asked = new URLSearchParams(location.search);
window.users = new Users(asked.get("user") ?? "nobody", asked.get("worker"));
