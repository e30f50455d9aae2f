import { useMemo, type ReactNode } from "react";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { useChat } from "@ai-sdk/react";
import { DirectChatTransport, ToolLoopAgent, type UIMessage } from "ai";
import { performModel } from "./model-stage.js";
import { Stage } from "./shown.js";

const textOf = ({ parts }: UIMessage): string => parts.map((part) => (part.type === "text" ? part.text : "")).join("");

function Chat({ url }: { readonly url: string }): ReactNode {
  const transport = useMemo(() => {
    const model = createOpenAICompatible({ name: "scripted", baseURL: url })("scripted");
    return new DirectChatTransport({ agent: new ToolLoopAgent({ model }) });
  }, [url]);
  const { messages, status, sendMessage } = useChat({ transport });
  return Stage({
    isRunning: status === "submitted" || status === "streaming",
    send: (text) => sendMessage({ text }),
    messages: messages.map((message) => ({ id: message.id, role: message.role, text: textOf(message) })),
  });
}

performModel((url) => <Chat url={url} />);
