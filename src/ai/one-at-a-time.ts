import type { LanguageModelV4 } from "@ai-sdk/provider";
import { inTurns } from "../platform/in-turns.js";
import { checkKind, type Check } from "../run/options.js";
import { generated } from "./generated.js";

const V4: Check = [
  (given) => (given as Partial<LanguageModelV4> | undefined)?.specificationVersion === "v4",
  "a language model of the AI SDK, specificationVersion v4 (wrapLanguageModel makes one of an older)",
];

/**
 * A model whose calls are made one after the other, for those that run in the worker itself (WebLLM, transformers.js): at the
 * same time they mix up their answers, or stop all of them when one is stopped. A call that is stopped while it waits never
 * reaches the model. Models of `offerModel` are asked like this unasked.
 *
 * @throws RunnerError `invalid-input` for a model of an older interface: `wrapLanguageModel` of `ai` brings it to this one
 */
export function oneAtATime(model: LanguageModelV4): LanguageModelV4 {
  checkKind("model", model, V4);
  const { provider, modelId, supportedUrls } = model;
  const doStream = inTurns(model);
  return {
    specificationVersion: "v4",
    provider,
    modelId,
    supportedUrls,
    doStream,
    doGenerate: async (given) => generated((await doStream(given)).stream),
  };
}
