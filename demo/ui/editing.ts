import type { Message } from "@ag-ui/client";

type UserMessage = Extract<Message, { role: "user" }>;

/** A question that is being changed. */
export interface Editing {
  readonly message: UserMessage;
  readonly text: string;
}

/** The text of a question, without its files. */
export function textOfQuestion({ content }: UserMessage): string {
  if (typeof content === "string") return content.trim();
  return content
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("\n")
    .trim();
}

export const editingOf = (message: Message | undefined): Editing | undefined =>
  message?.role === "user" ? { message, text: textOfQuestion(message) } : undefined;

/** What is sent in the message's place: the text as it is now, and its files. undefined: nothing would be left. */
export function editedContent({ message, text }: Editing): UserMessage["content"] | undefined {
  const words = text.trim();
  const files = typeof message.content === "string" ? [] : message.content.filter(({ type }) => type !== "text");
  if (files.length === 0) return words === "" ? undefined : words;
  return words === "" ? files : [{ type: "text", text: words }, ...files];
}
