import { EventType, type AbstractAgent } from "@ag-ui/client";
import { expect, onTestFinished, vi } from "vitest";
import { connectRuntime } from "../../../../src/client/connect-runtime.js";
import type { ThreadSnapshot } from "../../../../src/client/store/thread-snapshot.js";
import { ThreadStore } from "../../../../src/client/store/thread-store.js";
import { serveRuntime } from "../../../../src/worker/serve-runtime.js";
import { agentOf, freshDb } from "../../runner/kit.js";

/** Answers with the number of the messages that it was given, then with what it was asked; `wait` holds it. */
export function echo(hold: Promise<void> = Promise.resolve()) {
  return agentOf(async function* ({ messages, runId }) {
    const messageId = `${runId}-a`;
    const { content } = messages.at(-1)!;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${messages.length} ` };
    if (content === "wait") await hold;
    if (content === "fail") throw new Error("no");
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: String(content) };
    yield { type: EventType.TEXT_MESSAGE_END, messageId };
  });
}

export function host(agents: Readonly<Record<string, AbstractAgent>>) {
  const served = serveRuntime({ dbName: freshDb(), stopGraceMs: 50, agents });
  onTestFinished(() => served.close());
  const connect = () => {
    const runtime = connectRuntime({ hosts: { page: async () => served.connect() } });
    onTestFinished(() => runtime.close());
    return runtime;
  };
  const open = (agentId: string, threadId = "t", messageLimit?: number) => {
    const store = new ThreadStore(connect(), {
      agentId,
      threadId,
      ...(messageLimit !== undefined && { messageLimit }),
    });
    const seen: ThreadSnapshot[] = [];
    const stop = store.subscribe(() => void seen.push(store.getSnapshot()));
    onTestFinished(stop);
    return { store, seen, stop };
  };
  return { connect, open };
}

export const idle = (store: ThreadStore, status = "finished"): Promise<void> =>
  vi.waitFor(() => expect(store.getSnapshot().run).toMatchObject({ is: "idle", last: { status } }));
