import type { ReactNode } from "react";
import { useChat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import type { RuntimeConnection } from "ag-ui-local-runtime/client";
import { runtimeTransport, uiMessagesOf } from "../../../demo/recipes/ai-sdk.js";
import { Stage } from "./shown.js";
import { perform } from "./stage.js";

interface ChatProps {
  readonly threadId: string;
  readonly known: UIMessage[];
  readonly transport: ReturnType<typeof runtimeTransport>;
}

const textOf = ({ parts }: UIMessage): string => parts.map((part) => (part.type === "text" ? part.text : "")).join("");

function Chat({ threadId, known, transport }: ChatProps): ReactNode {
  const { messages, status, sendMessage } = useChat({ id: threadId, messages: known, transport });
  return Stage({
    isRunning: status === "submitted" || status === "streaming",
    send: (text) => sendMessage({ text }),
    messages: messages.map((message) => ({ id: message.id, role: message.role, text: textOf(message) })),
  });
}

perform(async (runtime: RuntimeConnection, threadId) => {
  const { messages } = await runtime.threads.messages(threadId, { limit: 500 });
  const transport = runtimeTransport(runtime, "writer");
  return <Chat threadId={threadId} known={uiMessagesOf(messages)} transport={transport} />;
});
