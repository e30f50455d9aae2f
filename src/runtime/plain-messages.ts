import type { Message } from "@ag-ui/client";

/** A message as CopilotKit's runtime gives it to middlewares and thread routes. */
export interface PlainMessage {
  readonly id: string;
  readonly role: string;
  readonly content?: unknown;
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly args: string }[];
  readonly toolCallId?: string;
}

export const plainMessages = (messages: readonly Message[]): PlainMessage[] => messages.map(plainMessage);

function plainMessage(message: Message): PlainMessage {
  const { id, role } = message;
  const content = "content" in message && message.content !== undefined ? { content: message.content } : {};
  if (role === "tool") return { id, role, ...content, toolCallId: message.toolCallId };
  if (role !== "assistant" || (message.toolCalls ?? []).length === 0) return { id, role, ...content };
  const toolCalls = message.toolCalls!.map((call) => ({
    id: call.id,
    name: call.function.name,
    args: call.function.arguments,
  }));
  return { id, role, ...content, toolCalls };
}
