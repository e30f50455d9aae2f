import { EventType } from "@ag-ui/core";
import { expect, onTestFinished, vi } from "vitest";
import { connectRuntime, type RuntimeConnection } from "../../../src/client/index.js";
import { storesOf } from "../../../src/client/store/runtime-stores.js";
import { defineAgent } from "../../../src/worker/define-agent.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";

export const DELTAS = 1_000;

/**
 * Answers with what it was asked; "many": 1,000 deltas, over some frames; "use tool": calls it, then says what it gave. The
 * state counts the runs.
 */
const echo = defineAgent(async function* ({ messages, runId, state }) {
  const messageId = `${runId}-a`;
  const [, toolCallName] = /^use (\w+)$/.exec(String(messages.at(-1)!.content)) ?? [];
  if (toolCallName !== undefined) {
    yield { type: EventType.TOOL_CALL_START, toolCallId: runId, toolCallName };
    yield { type: EventType.TOOL_CALL_ARGS, toolCallId: runId, delta: '{"n":1}' };
    return yield { type: EventType.TOOL_CALL_END, toolCallId: runId };
  }
  const { content } = messages.at(-1)!;
  const runs = ((state as { runs?: number }).runs ?? 0) + 1;
  yield { type: EventType.STATE_SNAPSHOT, snapshot: { runs, same: "same" } };
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  const deltas = content === "many" ? DELTAS : 1;
  for (let n = 0; n < deltas; n++) {
    yield {
      type: EventType.TEXT_MESSAGE_CONTENT,
      messageId,
      delta: deltas === 1 ? `you said ${String(content)}` : "x",
    };
    if (n % 50 === 49) await new Promise(requestAnimationFrame);
  }
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
});

/** A runtime with a host in this page. */
export function pageRuntime(): RuntimeConnection {
  const host = serveRuntime({ dbName: `front-${crypto.randomUUID()}`, agents: { echo } });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  return runtime;
}

/** A function that connects, and a page that has connected by it already and shows the thread `t`, of two messages. */
export async function knownThread(): Promise<() => RuntimeConnection> {
  const runtime = pageRuntime();
  const connect = (): RuntimeConnection => runtime;
  const store = storesOf(connect).thread({ threadId: "t", agentId: "echo" });
  onTestFinished(store.subscribe(() => undefined));
  await store.send("hello");
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", run: { is: "idle" } }));
  expect(store.getSnapshot().messages).toHaveLength(2);
  return connect;
}

/** The texts of the links of an element, by what they lead to. */
export const linksOf = (element: HTMLElement): (readonly [string | null, string])[] =>
  [...element.querySelectorAll("a")].map((link) => [link.getAttribute("href"), link.innerText]);

/** An element of the page, gone after the test. */
export function root(): HTMLElement {
  const element = document.body.appendChild(document.createElement("main"));
  onTestFinished(() => element.remove());
  return element;
}
