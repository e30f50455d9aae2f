import { EventType } from "@ag-ui/core";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";
import { obeyLab } from "./scripted-control.js";
import { ownName } from "./worker-name.js";

/** Calls the tools that the question names ("a b": two calls), then says what they gave. */
const caller = defineAgent(async function* ({ messages, runId }) {
  const last = messages.at(-1)!;
  if (last.role === "user") {
    for (const [at, toolCallName] of String(last.content).split(" ").entries()) {
      const toolCallId = `${runId}-${at}`;
      yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName };
      yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: "{}" };
      yield { type: EventType.TOOL_CALL_END, toolCallId };
    }
    return;
  }
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const results = messages
    .slice(asked)
    .flatMap((message) => (message.role === "tool" ? [String(message.content)] : []));
  const messageId = `${runId}-m`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: results.join(", ") };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
});

obeyLab();
serveRuntime({ dbName: ownName().split("#")[0]!, agents: { caller } });
