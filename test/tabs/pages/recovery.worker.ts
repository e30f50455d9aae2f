import { EventType } from "@ag-ui/core";
import type { AGUIEvent, RunAgentInput } from "@ag-ui/core";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";
import { executions } from "./recovery-log.js";
import { obeyLab } from "./scripted-control.js";
import { ownName } from "./worker-name.js";

const name = ownName();
const log = executions(name);

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const isDone = ({ messages }: RunAgentInput, toolCallId: string): boolean =>
  messages.some((message) => message.role === "tool" && message.toolCallId === toolCallId);

/** The words of the step that are not said yet. */
function rest({ messages }: RunAgentInput, messageId: string, text: string): readonly string[] {
  const said = messages.find(({ id }) => id === messageId)?.content;
  return text.slice(typeof said === "string" ? said.length : 0).match(/\S+\s*/g) ?? [];
}

/**
 * Asked "10 search pay", it says something before each of the tools, calls it, and says something in the end; each word and
 * each tool takes 10 ms. It goes on from whatever is there already.
 */
const worker = defineAgent(
  async function* (input, { committed }): AsyncGenerator<AGUIEvent> {
    const { messages, threadId } = input;
    const question = messages.findLast(({ role }) => role === "user")!;
    const [ms = "", ...tools] = String(question.content).split(" ");
    for (const [n, tool] of [...tools, undefined].entries()) {
      const messageId = `${question.id}-a${n}`;
      const words = rest(input, messageId, `step ${n} of ${tools.length} says what it has found so far`);
      if (words.length > 0) {
        yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
        for (const delta of words) {
          await pause(Number(ms));
          yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta };
        }
        yield { type: EventType.TEXT_MESSAGE_END, messageId };
      }
      if (tool === undefined) return;
      const toolCallId = `${question.id}-c${n}`;
      if (isDone(input, toolCallId)) continue;
      const isCalled = messages.some(
        (message) => message.role === "assistant" && message.toolCalls?.some(({ id }) => id === toolCallId),
      );
      if (!isCalled) {
        yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: tool, parentMessageId: messageId };
        yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: "{}" };
        await pause(Number(ms));
        yield { type: EventType.TOOL_CALL_END, toolCallId };
      }
      await committed();
      await (await log).add("all", { toolCallId, name: tool, thread: threadId });
      await pause(5 * Number(ms));
      yield {
        type: EventType.TOOL_CALL_RESULT,
        messageId: `${toolCallId}-r`,
        toolCallId,
        role: "tool",
        content: "done",
      };
    }
  },
  { continues: true, repeatableTools: ["search"] },
);

/** Ends its host in the middle of each answer. */
const crasher = defineAgent(async function* (_input, { committed, attempt }): AsyncGenerator<AGUIEvent> {
  yield { type: EventType.TEXT_MESSAGE_START, messageId: "crash", role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "crash", delta: `attempt ${attempt?.number ?? 1}` };
  await committed();
  self.close();
  await new Promise(() => undefined);
});

obeyLab();
serveRuntime({
  dbName: name.split("#")[0]!,
  agents: { worker, crasher },
  agentPolicies: {
    worker: { recovery: { maxAttempts: 1_000, backoffMs: 20, maxBackoffMs: 100 } },
    crasher: { recovery: { maxAttempts: 10, backoffMs: 10, maxBackoffMs: 20 } },
  },
});
