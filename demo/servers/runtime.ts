import { EventType } from "@ag-ui/core";
import { AgentRuntime } from "ag-ui-local-runtime/runtime";
import { defineAgent } from "ag-ui-local-runtime/worker";

const echo = defineAgent(async function* (input, { signal }) {
  const messageId = `${input.runId}-answer`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  for (const word of String(input.messages.at(-1)?.content).split(" ")) {
    if (signal.aborted) return;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${word} ` };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});

/** In Node it keeps its threads in memory, unless it is given a `runner` of your own. */
export const runtime = new AgentRuntime({ agents: { echo } });
