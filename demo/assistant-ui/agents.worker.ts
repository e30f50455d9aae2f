import { EventType } from "@ag-ui/core";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Does what the question has in it: `long`, `fail`, `look` (a tool of its own), `colour` (a tool of the page), `ask` (an interrupt). */
const poet = defineAgent(async function* ({ messages, runId, resume, threadId }, { signal }) {
  const last = messages.at(-1);
  const messageId = `${runId}-answer`;
  const question = String(last?.content);
  const toolCallId = `${runId}-call`;
  if (question.includes("fail")) throw new Error("The poet has lost the thread.");
  if (last?.role === "user" && question.includes("ask") && resume === undefined) {
    const interrupts = [{ id: `${runId}-ask`, reason: "confirmation", message: "Shall I go on?" }];
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } };
    return;
  }
  const tool = ["look", "colour"].find((name) => last?.role === "user" && question.includes(name));
  if (tool !== undefined) {
    yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: tool, parentMessageId: messageId };
    yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: '{"at":"the sea"}' };
    yield { type: EventType.TOOL_CALL_END, toolCallId };
    if (tool === "colour") return; // the page answers it, and runs on
    yield { type: EventType.TOOL_CALL_RESULT, toolCallId, messageId: `${runId}-result`, content: '"It is calm."' };
  }
  const answer = `You said: ${question}. ${resume === undefined ? "" : `You answered: ${resume[0]?.status}. `}`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  const middle = "and on ".repeat(question.includes("long") ? 1_000 : 40);
  for (const word of `${answer}I say it slowly, word by word, ${middle}until the end.`.split(" ")) {
    if (signal.aborted) return; // stopped, from whichever tab
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${word} ` };
    await pause(50);
  }
});

serveRuntime({ agents: { poet }, dbName: "assistant-ui" });
