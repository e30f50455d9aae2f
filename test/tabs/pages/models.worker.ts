import { EventType } from "@ag-ui/core";
import { aiAgent, tabModel } from "ag-ui-local-runtime/ai";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";
import { obeyLab } from "./scripted-control.js";
import { ownName } from "./worker-name.js";

const model = tabModel("counter");

/** Asks the tabs' model, by the road of every agent of a model. */
const asker = aiAgent({ model });

/** The same, and does not wait. */
const hasty = aiAgent({ model: tabModel("counter", { waitMs: 1 }) });

/** Takes all that the model says, and says how many parts came in a second. */
const meter = defineAgent(async function* ({ messages, runId }, { signal }) {
  const text = String(messages.at(-1)?.content);
  const since = performance.now();
  const { stream } = await model.doStream({
    prompt: [{ role: "user", content: [{ type: "text", text }] }],
    abortSignal: signal,
  });
  let parts = 0;
  const reader = stream.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) parts++;
  const perSecond = Math.round((1_000 * parts) / (performance.now() - since));
  yield { type: EventType.TEXT_MESSAGE_START, messageId: runId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: runId, delta: JSON.stringify({ parts, perSecond }) };
  yield { type: EventType.TEXT_MESSAGE_END, messageId: runId };
});

obeyLab();
serveRuntime({ dbName: ownName().split("#")[0]!, agents: { asker, hasty, meter } });
