import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { aiAgent, aiTool } from "ag-ui-local-runtime/ai";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { z } from "zod";
import { ownName } from "./worker-name.js";

/** Asks the server that the page names, with the page's key. */
const assistant = aiAgent({
  model: ({ headers }) =>
    createOpenAICompatible({
      name: "scripted",
      baseURL: headers["x-model-url"] ?? "",
      apiKey: headers["x-model-key"] ?? "",
    })("scripted"),
  tools: {
    add: aiTool({ parameters: z.object({ a: z.number(), b: z.number() }), execute: ({ a, b }) => a + b }),
  },
  settings: { maxRetries: 0 },
});

serveRuntime({ dbName: ownName().split("#")[0]!, agents: { assistant } });
