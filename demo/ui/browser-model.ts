import type { PromptApiModel, PromptApiStatus } from "ag-ui-local-runtime/ai";
import type { RuntimeConnection } from "ag-ui-local-runtime/client";
import { BROWSER } from "../model/choice.js";
import type { Feedback } from "./feedback.js";

/** The browser's own model, where it has one: only a page can run it, so this tab does for the worker. */
export class BrowserModel {
  /** undefined: this browser has none. */
  status: PromptApiStatus | undefined;
  #offered: RuntimeConnection | undefined;
  #model: Promise<PromptApiModel> | undefined;

  constructor(private readonly page: Feedback) {
    if ("LanguageModel" in globalThis) this.status = { is: "unavailable" };
  }

  /** Lets the agents of the connection's host ask it. Nothing is downloaded for it. */
  async offer(runtime: RuntimeConnection): Promise<void> {
    if (this.status === undefined || this.#offered === runtime) return;
    this.#offered = runtime;
    this.#model ??= this.#load();
    runtime.offerModel(BROWSER, { model: await this.#model });
  }

  /** Only at a click: browsers ask for one. */
  async download(): Promise<void> {
    // The status has the reason of a failure.
    await this.#model?.then((model) => model.download()).catch(() => undefined);
  }

  async #load(): Promise<PromptApiModel> {
    const model = (await import("ag-ui-local-runtime/ai")).promptApiModel({
      expectedOutputs: [{ type: "text", languages: ["en"] }],
    });
    model.status$.subscribe((status) => {
      this.status = status;
      this.page.changed();
    });
    return model;
  }
}
