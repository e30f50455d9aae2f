import { EventType, type AGUIEvent } from "@ag-ui/core";
import { defineAgent } from "ag-ui-local-runtime/worker";

/**
 * Calls the tools that the question names ("a b": two calls), then says what they gave. Asked "?", it interrupts its run,
 * and says what it was answered.
 */
export const caller = defineAgent(async function* ({ messages, runId, threadId, resume }) {
  const last = messages.at(-1)!;
  if (resume?.[0] !== undefined) {
    yield* says(`${runId}-m`, `${resume[0].interruptId} answered by ${String(resume[0].payload)} in ${runId}`);
    return;
  }
  if (last.content === "?") {
    const interrupts = [{ id: `${runId}-i`, reason: "confirmation" }];
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } };
    return;
  }
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
  yield* says(`${runId}-m`, results.join(", "));
});

function* says(messageId: string, delta: string): Generator<AGUIEvent, void> {
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
}
