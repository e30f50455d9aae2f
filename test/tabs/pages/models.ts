import { promptApiModel } from "ag-ui-local-runtime/ai";
import {
  connectRuntime,
  RunnerError,
  ThreadStore,
  type RuntimeConnection,
  type ThreadRun,
} from "ag-ui-local-runtime/client";
import { ScriptedLanguageModel } from "./scripted-language-model.js";
import { workerName } from "./worker-name.js";

/** How the thread and the model stand in this tab. */
export interface ModelsView {
  readonly isReady: boolean;
  readonly run: ThreadRun;
  readonly messages: readonly string[];
  readonly bootId: string | undefined;
  readonly creates: number;
  readonly prompts: number;
  readonly stopped: number;
  readonly failures: readonly string[];
}

/**
 * A tab with a thread, and with a language model of the browser.
 *
 * Query: `worker` (database and host), `thread`, `agent`; `is`: how the browser's model stands; `offers`: "no", "plain"
 * (it does not continue), "continues".
 */
class ModelsPage {
  readonly model: ScriptedLanguageModel;
  private readonly runtime: RuntimeConnection;
  private readonly store: ThreadStore;
  private readonly failures: string[] = [];
  private bootId: string | undefined;
  private end: () => void = () => undefined;

  constructor(query: URLSearchParams) {
    const parameter = (name: string, other = ""): string => query.get(name) ?? other;
    this.model = new ScriptedLanguageModel(parameter("is", "available"));
    this.runtime = connectRuntime({
      hosts: {
        shared: (name) =>
          new SharedWorker(new URL("./models.worker.ts", import.meta.url), {
            type: "module",
            name: workerName(parameter("worker"), name),
          }),
      },
    });
    this.runtime.status$.subscribe((status) => (this.bootId = status.is === "connected" ? status.bootId : undefined));
    const agentId = parameter("agent", "asker");
    this.store = new ThreadStore(this.runtime, { agentId, threadId: parameter("thread") });
    this.store.subscribe(() => undefined);
    const offers = parameter("offers", "no");
    if (offers !== "no") this.offer(offers === "continues");
  }

  offer(continues: boolean): void {
    const model = promptApiModel({ api: this.model.api });
    const shown = document.querySelector("output");
    model.status$.subscribe((status) => {
      if (shown !== null)
        shown.textContent =
          status.is === "downloading" ? `downloading ${Math.round(100 * (status.progress ?? 0))} %` : status.is;
    });
    document.querySelector("button")?.addEventListener("click", () => {
      model.download().catch((error: unknown) => this.failures.push(String(error)));
    });
    const failed = (error: Error): void => void this.failures.push(error.message);
    this.end = this.runtime.offerModel("counter", { model, continues, failed });
  }

  endOffer(): void {
    this.end();
  }

  view(): ModelsView {
    const { status, run, messages } = this.store.getSnapshot();
    const { creates, prompts, stopped } = this.model;
    return {
      isReady: status === "ready",
      run,
      messages: messages.map((message) => `${message.role}: ${String(message.content ?? "")}`),
      bootId: this.bootId,
      creates,
      prompts,
      stopped,
      failures: this.failures,
    };
  }

  /** @returns "ok", or the code of the RunnerError */
  ask(question: string): Promise<string> {
    return this.store.send(question).then(
      () => "ok",
      (error: unknown) => (RunnerError.is(error) ? error.code : String(error)),
    );
  }

  stop(): void {
    this.store.stop();
  }
}

declare global {
  interface Window {
    models: ModelsPage;
  }
}
window.models = new ModelsPage(new URLSearchParams(location.search));
