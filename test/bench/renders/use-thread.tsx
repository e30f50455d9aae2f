import type { ReactNode } from "react";
import { RuntimeProvider, useThread } from "ag-ui-local-runtime/react";
import { Stage } from "./shown.js";
import { perform } from "./stage.js";

function Chat({ threadId }: { readonly threadId: string }): ReactNode {
  const { messages, run, isSending, send } = useThread(threadId, { agentId: "writer" });
  return Stage({
    isRunning: isSending || run.is === "running",
    send,
    messages: messages.map(({ id, role, content }) => ({ id, role, text: String(content) })),
  });
}

perform(async (runtime, threadId) => (
  <RuntimeProvider runtime={runtime}>
    <Chat threadId={threadId} />
  </RuntimeProvider>
));
