import type { LanguageModelV4 } from "@ai-sdk/provider";
import { inTurns } from "../platform/in-turns.js";
import { generated } from "./generated.js";

/**
 * A model whose calls are made one after the other, for those that run in the worker itself (WebLLM, transformers.js): at the
 * same time they mix up their answers, or stop all of them when one is stopped. A call that is stopped while it waits never
 * reaches the model. Models of `offerModel` are asked like this unasked.
 */
export function oneAtATime(model: LanguageModelV4): LanguageModelV4 {
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
