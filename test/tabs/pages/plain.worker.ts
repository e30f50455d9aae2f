import { EventType } from "@ag-ui/core";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";

/** Says back what it was told, then waits until it is stopped. Needs nothing that a browser could refuse. */
const echo = defineAgent(async function* (input, { signal }) {
  const messageId = `echo-${input.runId}`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: String(input.messages.at(-1)?.content) };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
});

// With "memory" in the worker's name threads may be kept in memory.
serveRuntime({ agents: { echo }, dbName: "plain", memoryFallback: self.name.includes("memory") });
