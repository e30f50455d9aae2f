import type { MessageContent } from "ag-ui-local-runtime/copilotkit";

/** The words of a question, without its files. */
export const textOf = (content: MessageContent): string =>
  typeof content === "string"
    ? content
    : content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");

/** The same question in other words: its files go along. */
export const withText = (content: MessageContent, text: string): MessageContent =>
  typeof content === "string" ? text : [{ type: "text", text }, ...content.filter(({ type }) => type !== "text")];
