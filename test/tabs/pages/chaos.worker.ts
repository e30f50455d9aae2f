import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { aiAgent, type AiTool } from "ag-ui-local-runtime/ai";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { resultOf } from "../chaos/plan.js";
import type { Deposition } from "../chaos/witness.js";
import { obeyLab } from "./scripted-control.js";
import { ownName } from "./worker-name.js";

// "<database>#<anything>#<port of the model>#<port of the witness>"
const [dbName = "", , model = "", witness = ""] = ownName().split("#");

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Tells the witness, for as long as it takes: a tool whose network is cut has to wait, too. */
async function executed(toolCallId: string, signal: AbortSignal): Promise<string> {
  const said: Deposition = { is: "executed", toolCallId, execution: crypto.randomUUID() };
  for (;;) {
    try {
      await fetch(`http://127.0.0.1:${witness}/`, { method: "POST", body: JSON.stringify(said), signal });
      break;
    } catch (error) {
      if (signal.aborted) throw error;
      await pause(20);
    }
  }
  // Time for a death between what it does and its result.
  await pause(Math.random() * 15);
  return resultOf(toolCallId);
}

const tool = (repeatable: boolean): AiTool => ({
  description: "Does what it is called.",
  parameters: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
  repeatable,
  execute: (_args, { toolCallId, signal }) => executed(toolCallId, signal),
});

const planned = aiAgent({
  model: createOpenAICompatible({ name: "planned", baseURL: `http://127.0.0.1:${model}/v1` })("planned"),
  tools: { look: tool(true), pay: tool(false) },
  // What fails is for the recovery to try again.
  settings: { maxRetries: 0 },
});

obeyLab();
serveRuntime({
  agents: { planned },
  dbName,
  agentPolicies: {
    planned: { needsNetwork: true, recovery: { maxAttempts: 6, backoffMs: 10, maxBackoffMs: 200 } },
  },
});
