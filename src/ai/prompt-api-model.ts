import { defined } from "../platform/defined.js";
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
  SharedV4Warning,
} from "@ai-sdk/provider";
import { ReplaySubject, type Observable } from "rxjs";
import { invalidInput, messageOf, RunnerError } from "../run/errors.js";
import { equalJson } from "../run/json.js";
import { checkKind, checkNames, LIST, NUMBER, TEXT, type Names } from "../run/options.js";
import { generated } from "./generated.js";
import { promptApiMessages } from "./prompt-api-messages.js";
import type { PromptApi, PromptApiMessage, PromptApiOptions, PromptApiSession } from "./prompt-api.js";

/** How the browser's own model stands. */
export type PromptApiStatus =
  /** The browser has none, not for these options, or not on this device. */
  | { readonly is: "unavailable"; readonly reason?: string }
  /** It can be had: show a button that calls `download()`. `reason`: why the last download failed. */
  | { readonly is: "downloadable"; readonly reason?: string }
  /** `progress`: from 0 to 1; absent where somebody else began it. */
  | { readonly is: "downloading"; readonly progress?: number }
  | { readonly is: "ready" };

/** Options of {@link promptApiModel}. */
export interface PromptApiModelOptions extends PromptApiOptions {
  /** Default: the browser's `LanguageModel`, if it has one. */
  readonly api?: PromptApi;
}

/** The browser's own language model as one of the AI SDK, for `offerModel` or for use in the page itself. */
export interface PromptApiModel extends LanguageModelV4 {
  readonly continues: true;
  readonly concurrent: true;
  /** Replays the latest; the first comes once the browser has said. Never errors. */
  readonly status$: Observable<PromptApiStatus>;
  /**
   * Downloads the model. Call it in the handler of a click: browsers ask for that. Resolves when the model is ready. It is
   * the only thing that downloads: a call of a model that is not there fails.
   *
   * Errors: why it cannot be downloaded, as the browser says it.
   */
  download(): Promise<void>;
  /** Asks the browser anew, and tells `status$`. */
  check(): Promise<PromptApiStatus>;
  /** Lets go of the last conversation, which is kept for its next question, and keeps none from then on. */
  close(): void;
}

const NAMES: Names<PromptApiModelOptions> = {
  api: ["availability", "create"],
  expectedInputs: LIST,
  expectedOutputs: LIST,
  samplingMode: TEXT,
  temperature: NUMBER,
  topK: NUMBER,
};

/** How often the browser is asked for a download that somebody else began, in ms. */
const LOOK_MS = 3_000;

/** Call options that the browser's model does not have. */
const UNSUPPORTED = [
  "tools",
  "temperature",
  "topP",
  "topK",
  "maxOutputTokens",
  "stopSequences",
  "presencePenalty",
  "frequencyPenalty",
  "seed",
] as const satisfies readonly (keyof LanguageModelV4CallOptions)[];

const UNKNOWN: LanguageModelV4Usage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};

/**
 * A model of the AI SDK made of the browser's own (`LanguageModel`, the Prompt API), for pages: workers do not have it. It
 * asks the browser for the model's state at once, and downloads nothing. https://webmachinelearning.github.io/prompt-api/
 *
 * @throws RunnerError `invalid-input` for unknown options
 */
export function promptApiModel(options: PromptApiModelOptions = {}): PromptApiModel {
  checkNames(options, NAMES, { of: "promptApiModel" });
  if (options.api !== undefined) checkKind("api", options.api, NAMES.api);
  const { api = (globalThis as { LanguageModel?: PromptApi }).LanguageModel, ...core } = options;
  return new BrowserModel(api, core);
}

class BrowserModel implements PromptApiModel {
  readonly specificationVersion = "v4";
  readonly provider = "browser";
  readonly modelId = "prompt-api";
  readonly supportedUrls = {};
  readonly continues = true;
  // Each call has a session of its own.
  readonly concurrent = true;
  private readonly statuses = new ReplaySubject<PromptApiStatus>(1);
  readonly status$ = this.statuses.asObservable();
  private last: PromptApiStatus | undefined;
  private downloading: Promise<void> | undefined;
  private looking: ReturnType<typeof setTimeout> | undefined;
  /** The last conversation: a call that goes on with it need not have it read again. */
  private kept: { readonly messages: readonly PromptApiMessage[]; readonly session: PromptApiSession } | undefined;

  private isClosed = false;

  constructor(
    private readonly api: PromptApi | undefined,
    private readonly core: PromptApiOptions,
  ) {
    void this.check();
  }

  async check(): Promise<PromptApiStatus> {
    const status = await this.asked();
    // A download of our own tells its progress itself.
    return this.downloading === undefined ? this.tell(status) : (this.last ?? status);
  }

  download(): Promise<void> {
    this.downloading ??= this.fetch();
    return this.downloading;
  }

  close(): void {
    this.isClosed = true;
    this.forget();
    clearTimeout(this.looking);
  }

  async doStream(call: LanguageModelV4CallOptions): Promise<LanguageModelV4StreamResult> {
    const { abortSignal: signal, prompt, responseFormat } = call;
    const messages = promptApiMessages(prompt, this.core.expectedInputs);
    const warnings: SharedV4Warning[] = UNSUPPORTED.filter((feature) => isGiven(call[feature])).map((feature) => ({
      type: "unsupported",
      feature,
    }));
    const schema = responseFormat?.type === "json" ? responseFormat.schema : undefined;
    if (responseFormat?.type === "json" && schema === undefined) {
      warnings.push({ type: "unsupported", feature: "responseFormat", details: "JSON without a schema" });
    }
    const { session, rest } = await this.sessionFor(messages, signal);
    try {
      const texts = session.promptStreaming(rest, defined({ signal, responseConstraint: schema }));
      return { stream: partsOf(texts.getReader(), warnings, (answer) => this.leave(session, messages, answer)) };
    } catch (error) {
      session.destroy();
      throw error;
    }
  }

  async doGenerate(call: LanguageModelV4CallOptions) {
    return generated((await this.doStream(call)).stream);
  }

  private forget(): void {
    this.kept?.session.destroy();
    this.kept = undefined;
  }

  private tell(status: PromptApiStatus): PromptApiStatus {
    clearTimeout(this.looking);
    // Its session is gone with it.
    if (status.is !== "ready") this.forget();
    // Nothing tells the end of a download that another page began.
    if (status.is === "downloading" && this.downloading === undefined && !this.isClosed) {
      this.looking = setTimeout(() => void this.check(), LOOK_MS);
    }
    if (!equalJson(status, this.last)) this.statuses.next((this.last = status));
    return status;
  }

  private async asked(): Promise<PromptApiStatus> {
    if (this.api === undefined) return { is: "unavailable", reason: "This browser has no LanguageModel" };
    try {
      const availability = await this.api.availability(this.core);
      if (availability === "available") return { is: "ready" };
      if (availability === "downloadable" || availability === "downloading") return { is: availability };
      return { is: "unavailable" };
    } catch (error) {
      // A frame without permission, for example.
      return { is: "unavailable", reason: messageOf(error) };
    }
  }

  private async fetch(): Promise<void> {
    const { api } = this;
    try {
      if (api === undefined) throw unavailable("unavailable: this browser has no LanguageModel");
      // Nothing is awaited before: the browser wants the click that this is called in.
      const creating = api.create({
        ...this.core,
        monitor: (monitor) =>
          monitor.addEventListener("downloadprogress", (event) => {
            // From 0 to 1, whatever the size.
            this.tell({ is: "downloading", progress: (event as ProgressEvent).loaded });
          }),
      });
      // What is there already is only loaded.
      if (this.last?.is !== "ready") this.tell({ is: "downloading", progress: 0 });
      (await creating).destroy();
      this.downloading = undefined;
      this.tell({ is: "ready" });
    } catch (error) {
      const status = await this.asked();
      // Before it is told: where another page goes on downloading, this one has to look.
      this.downloading = undefined;
      this.tell(status.is === "downloadable" ? { ...status, reason: messageOf(error) } : status);
      throw error;
    }
  }

  /** A session that has read the beginning of the messages, and the messages that it has still to read. */
  private async sessionFor(messages: readonly PromptApiMessage[], signal: AbortSignal | undefined) {
    const { api, core, kept } = this;
    const status = await this.check();
    // Creating a session would download the model.
    if (api === undefined || status.is !== "ready") {
      throw unavailable(`${status.is}: it must be "ready"; download() in the handler of a click makes it so`);
    }
    const own = signal === undefined ? {} : { signal };
    const known = kept?.messages.length ?? 0;
    if (kept !== undefined && known < messages.length && equalJson(kept.messages, messages.slice(0, known))) {
      // A copy: a call that is stopped leaves half an answer in its session. The browser may have ended the original.
      const session = await kept.session.clone(own).catch(() => undefined);
      if (session !== undefined) return { session, rest: messages.slice(known) };
      signal?.throwIfAborted();
    }
    // An assistant message at the end is for the prompt: the model goes on with it.
    const from = messages.findLastIndex(({ role }) => role === "user");
    if (from < 0) throw invalidInput("prompt", "The browser's language model needs a message of the user");
    const initialPrompts = messages.slice(0, from);
    return {
      session: await api.create({ ...core, ...own, ...(initialPrompts.length > 0 && { initialPrompts }) }),
      rest: messages.slice(from),
    };
  }

  /** @param answer undefined where it did not come to its end */
  private leave(session: PromptApiSession, messages: readonly PromptApiMessage[], answer: string | undefined): void {
    const isPlain = messages.every(({ content }) => content.every(({ type }) => type === "text"));
    // Media is not compared; a message that was gone on with is not the same afterwards.
    const isKept = answer !== undefined && answer !== "" && isPlain && messages.at(-1)?.prefix !== true;
    if (!isKept || this.isClosed) return session.destroy();
    this.forget();
    this.kept = {
      messages: [...messages, { role: "assistant", content: [{ type: "text", value: answer }] }],
      session,
    };
  }
}

const unavailable = (how: string): RunnerError =>
  new RunnerError("provider-unavailable", {}, { message: `The browser's language model is ${how}` });

const isGiven = (value: unknown): boolean => value !== undefined && !(Array.isArray(value) && value.length === 0);

/** @param left called with the whole answer, or undefined where it did not come to its end */
function partsOf(
  texts: ReadableStreamDefaultReader<string>,
  warnings: SharedV4Warning[],
  left: (answer: string | undefined) => void,
): ReadableStream<LanguageModelV4StreamPart> {
  const id = "0";
  let answer = "";
  let hasBegun = false;
  let isLeft = false;
  const leave = (said: string | undefined): void => {
    if (!isLeft) left(said);
    isLeft = true;
  };
  return new ReadableStream<LanguageModelV4StreamPart>({
    start: (controller) => controller.enqueue({ type: "stream-start", warnings }),
    async pull(controller) {
      try {
        const { done, value } = await texts.read();
        if (!hasBegun) controller.enqueue({ type: "text-start", id });
        hasBegun = true;
        if (!done) {
          answer += value;
          return controller.enqueue({ type: "text-delta", id, delta: value });
        }
        controller.enqueue({ type: "text-end", id });
        controller.enqueue({ type: "finish", finishReason: { unified: "stop", raw: undefined }, usage: UNKNOWN });
        leave(answer);
        controller.close();
      } catch (error) {
        leave(undefined);
        throw error;
      }
    },
    cancel: (reason) => texts.cancel(reason).finally(() => leave(undefined)),
  });
}
