import { EventType } from "@ag-ui/core";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";
import { MESSAGES, WORD, type Order } from "./order.js";

/** A thread of so many messages that the next question and its answer are the last of {@link MESSAGES}. */
const teller = defineAgent(async function* ({ runId }) {
  for (let i = 0; i < MESSAGES - 3; i++) {
    const messageId = `${runId}-${i}`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: i % 2 === 0 ? "assistant" : "user" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${i} `.padEnd(500, "and so on ") };
    yield { type: EventType.TEXT_MESSAGE_END, messageId };
  }
});

/** Says as many words as the question asks for, so many a second. */
const writer = defineAgent(async function* ({ messages, runId }) {
  const { n, rate } = JSON.parse(String(messages.at(-1)!.content)) as Order; // from the page of this bench
  const messageId = `${runId}-answer`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  const begun = performance.now();
  for (let said = 0; said < n; said++) {
    const ahead = begun + (said / rate) * 1_000 - performance.now();
    // The shortest pause of a timer: what is due meanwhile comes at once.
    if (ahead > 4) await new Promise((resolve) => setTimeout(resolve, ahead));
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: WORD };
  }
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
});

serveRuntime({ agents: { teller, writer }, dbName: "renders" });
