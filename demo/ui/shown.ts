import type { Message } from "@ag-ui/client";

/** Whether the conversation shows a message as one. */
export function isShown(message: Message): boolean {
  switch (message.role) {
    case "assistant":
      return (message.toolCalls ?? []).length > 0 || (message.content ?? "") !== "";
    // A result stands with its call.
    case "tool":
    case "system":
    case "developer":
      return false;
    default:
      return true;
  }
}
