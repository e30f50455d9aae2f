import { EventType } from "@ag-ui/core";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";

const poet = defineAgent(async function* ({ messages, runId }, { signal }) {
  const messageId = `${runId}-answer`;
  const question = String(messages.at(-1)?.content);
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  const middle = "and on ".repeat(question.includes("long") ? 1_000 : 40);
  for (const word of `You said: ${question}. I say it slowly, word by word, ${middle}until the end.`.split(" ")) {
    if (signal.aborted) return; // stopped, from whichever tab
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${word} ` };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
});

serveRuntime({ agents: { poet }, dbName: "frameworks" });
