import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from "@ai-sdk/provider";
import { abortWith, onAbort } from "../platform/abort.js";
import { loaded } from "../run/loaded.js";
import { checkKind, checkNames, ID, TIMEOUT, type Names } from "../run/options.js";
import type { ModelCall, ModelPart } from "../wire/model-frames.js";
import { leftOut } from "./media.js";
import { generated } from "./generated.js";

/** Options of {@link tabModel}. */
export interface TabModelOptions {
  /** How long a call waits for a tab that offers the model, each time that it needs one, in ms. Default 5,000. */
  readonly waitMs?: number;
}

const NAMES: Names<TabModelOptions> = { waitMs: TIMEOUT };

/**
 * A language model of the AI SDK that runs in a tab: one that offers it under this name by `offerModel`. For agents in the
 * worker; the host chooses the tab, a visible one first, and moves a call when that tab is lost. Headers of a call do not
 * go to the tab.
 *
 * Calls fail with RunnerError `provider-unavailable`: no tab offers it in time, the tab was lost with a part of the answer
 * that no other tab can go on with, or the model failed; `details` has the `name`, `statusCode` and `responseHeaders`
 * (`retry-after`) of its error.
 *
 * @param name as the page calls it
 * @throws RunnerError `invalid-input`
 */
export function tabModel(name: string, options: TabModelOptions = {}): LanguageModelV4 {
  checkKind("name", name, ID);
  checkNames(options, NAMES, { of: "tabModel" });
  const { waitMs = 5_000 } = options;
  const doStream = async (given: LanguageModelV4CallOptions): Promise<LanguageModelV4StreamResult> => {
    const { abortSignal, headers: _headers, ...asked } = given;
    const call = { ...asked, prompt: given.prompt.map(withoutUrls) };
    // The host has loaded it, where a tab has offered a model.
    const { tabModels } = await loaded(import("../runtime/models/tab-models.js"));
    const ended = abortWith(...(abortSignal === undefined ? [] : [abortSignal]));
    const { signal } = ended;
    signal.throwIfAborted();
    // The fields of the options are those of a call, which crosses as data.
    const parts = tabModels().answer({ model: name, call: call as unknown as ModelCall, waitMs, signal });
    // A generator that nobody asks for more would keep its tab: the signal alone is seen only by who waits.
    onAbort(signal, () => void parts.return());
    // So that the call itself fails where no tab begins to answer.
    let first: IteratorResult<ModelPart, void> | undefined;
    try {
      first = await parts.next();
    } catch (error) {
      ended.abort();
      throw error;
    }
    const stream = new ReadableStream<LanguageModelV4StreamPart>(
      {
        async pull(controller) {
          try {
            signal.throwIfAborted();
            const { done, value } = first ?? (await parts.next());
            first = undefined;
            if (done !== true) return controller.enqueue(value as LanguageModelV4StreamPart); // its shape was checked when it came
            ended.abort();
            controller.close();
          } catch (error) {
            ended.abort();
            throw error;
          }
        },
        cancel: (reason) => ended.abort(reason),
      },
      { highWaterMark: 0 },
    );
    return { stream };
  };
  return {
    specificationVersion: "v4",
    provider: "tab",
    modelId: name,
    // Media is downloaded before the call: what a tab's model reads of the web is not known here.
    supportedUrls: {},
    doStream,
    doGenerate: async (given) => generated((await doStream(given)).stream),
  };
}

/** A URL cannot be posted. The SDK has downloaded what stands at those of users; files that a model made are left out. */
const withoutUrls = (message: LanguageModelV4Message): LanguageModelV4Message =>
  message.role !== "assistant"
    ? message
    : {
        ...message,
        content: message.content.map((part) =>
          part.type === "file" && part.data.type === "url" ? { type: "text", text: leftOut(part.mediaType) } : part,
        ),
      };
