import type { LanguageModelV4FilePart, LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { leftOut } from "./left-out.js";
import type { PromptApiContent, PromptApiMessage } from "./prompt-api.js";

const text = (value: string): PromptApiContent => ({ type: "text", value });

/**
 * A prompt of the AI SDK in the messages of the browser's model: it takes one system message, first; tool calls and their
 * results are told as text; a file that it cannot read is left out, and it is told so; an assistant message at the end is
 * gone on with.
 */
export function promptApiMessages(prompt: LanguageModelV4Prompt): readonly PromptApiMessage[] {
  const system = prompt.flatMap((message) => (message.role === "system" ? [message.content] : []));
  const talk = prompt.flatMap(messageOf).filter(({ content }) => content.length > 0);
  const last = talk.at(-1);
  const messages = last?.role === "assistant" ? [...talk.slice(0, -1), { ...last, prefix: true }] : talk;
  if (system.length === 0) return messages;
  return [{ role: "system", content: [text(system.join("\n\n"))] }, ...messages];
}

function messageOf(message: LanguageModelV4Message): PromptApiMessage[] {
  switch (message.role) {
    case "system":
      return [];
    case "user":
      return [
        {
          role: "user",
          content: message.content.map((part) => (part.type === "text" ? text(part.text) : contentOf(part))),
        },
      ];
    case "assistant": {
      const content = message.content.flatMap((part) => {
        if (part.type === "text") return [text(part.text)];
        // What it thought is not for it to read; the rest comes from other models.
        if (part.type !== "tool-call") return [];
        return [text(`[Called the tool ${part.toolName} with ${JSON.stringify(part.input)}]`)];
      });
      return [{ role: "assistant", content }];
    }
    case "tool": {
      const results = message.content.filter((part) => part.type === "tool-result");
      const told = results.map(({ toolName, output }) => text(`[The tool ${toolName} gave ${JSON.stringify(output)}]`));
      return [{ role: "user", content: told }];
    }
  }
}

function contentOf({ mediaType, data }: LanguageModelV4FilePart): PromptApiContent {
  if (data.type === "text") return text(data.text);
  const kind = (["image", "audio"] as const).find((one) => mediaType === one || mediaType.startsWith(`${one}/`));
  if (kind === undefined || data.type !== "data") return text(leftOut(mediaType));
  const bytes = data.data;
  return {
    type: kind,
    value: typeof bytes === "string" ? Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0)) : bytes,
  };
}
