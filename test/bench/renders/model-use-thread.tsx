import type { ReactNode } from "react";
import { connectRuntime } from "ag-ui-local-runtime/client";
import { RuntimeProvider, useThread } from "ag-ui-local-runtime/react";
import { performModel } from "./model-stage.js";
import { Stage } from "./shown.js";

const runtime = connectRuntime({
  hosts: {
    shared: (name) => new SharedWorker(new URL("./model.worker.ts", import.meta.url), { type: "module", name }),
  },
});
const threadId = crypto.randomUUID();

function Chat({ url }: { readonly url: string }): ReactNode {
  const { messages, run, isSending, send } = useThread(threadId, { agentId: "model" });
  return Stage({
    isRunning: isSending || run.is === "running",
    send: (text) => send(text, { forwardedProps: { url } }),
    messages: messages.map(({ id, role, content }) => ({ id, role, text: String(content) })),
  });
}

performModel((url) => (
  <RuntimeProvider runtime={runtime}>
    <Chat url={url} />
  </RuntimeProvider>
));
