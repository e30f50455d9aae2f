import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { aiAgent } from "ag-ui-local-runtime/ai";
import { serveRuntime } from "ag-ui-local-runtime/worker";

const model = aiAgent({
  model: ({ input }) => {
    const { url } = input.forwardedProps as { url: string }; // from the page of this bench
    return createOpenAICompatible({ name: "scripted", baseURL: url })("scripted");
  },
});

serveRuntime({ agents: { model }, dbName: "models" });
