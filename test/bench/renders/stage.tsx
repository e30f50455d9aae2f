import type { ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { connectRuntime, type RuntimeConnection } from "ag-ui-local-runtime/client";
import { MESSAGES, WORD, type Order, type Renders } from "./order.js";
import { counted, send, until } from "./shown.js";

const runtime = connectRuntime({
  hosts: {
    shared: (name) => new SharedWorker(new URL("./agents.worker.ts", import.meta.url), { type: "module", name }),
  },
});

const threadId = crypto.randomUUID();

/** Puts the contestant on the stage, and on the page what the bench calls. */
export function perform(contestant: (runtime: RuntimeConnection, threadId: string) => Promise<ReactNode>): void {
  const renders = {
    /** A thread of many messages, on the screen. */
    async prepare(): Promise<void> {
      const agent = runtime.agent("teller", { threadId });
      agent.addMessage({ id: "first", role: "user", content: "Tell" });
      await agent.runAgent();
      createRoot(document.body.appendChild(document.createElement("main"))).render(await contestant(runtime, threadId));
      await until(({ isRunning, messages }) => !isRunning && messages.length === MESSAGES - 2);
    },
    /** A question, until its answer is on the screen. */
    async run(order: Order): Promise<Renders> {
      Object.assign(counted, { list: 0, messages: 0 });
      await send(JSON.stringify(order));
      const { messages } = await until((now) => !now.isRunning && now.messages.length === MESSAGES);
      const { text } = messages.at(-1)!;
      if (text !== WORD.repeat(order.n)) throw new Error(`a text of ${text.length} that is not what was said`);
      return { ...counted };
    },
  };
  Object.assign(globalThis, { renders });
}
