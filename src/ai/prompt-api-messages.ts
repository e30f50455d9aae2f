import type { LanguageModelV4FilePart, LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { base64In, kindOf, leftOut } from "./media.js";
import type { PromptApiContent, PromptApiExpected, PromptApiMessage } from "./prompt-api.js";

const text = (value: string): PromptApiContent => ({ type: "text", value });

/**
 * A prompt of the AI SDK in the messages of the browser's model: it takes one system message, first; tool calls and their
 * results are told as text; a file that it cannot read is left out, and it is told so; an assistant message at the end is
 * gone on with.
 *
 * @param expected what the session is made for: it refuses files of another kind
 */
export function promptApiMessages(
  prompt: LanguageModelV4Prompt,
  expected: readonly PromptApiExpected[] = [],
): readonly PromptApiMessage[] {
  const kinds = new Set(expected.map(({ type }) => type));
  const system = prompt.flatMap((message) => (message.role === "system" ? [message.content] : []));
  const talk = prompt.flatMap((message) => messageOf(message, kinds)).filter(({ content }) => content.length > 0);
  const last = talk.at(-1);
  const messages = last?.role === "assistant" ? [...talk.slice(0, -1), { ...last, prefix: true }] : talk;
  if (system.length === 0) return messages;
  return [{ role: "system", content: [text(system.join("\n\n"))] }, ...messages];
}

type Kinds = ReadonlySet<PromptApiContent["type"]>;

function messageOf(message: LanguageModelV4Message, kinds: Kinds): PromptApiMessage[] {
  switch (message.role) {
    case "system":
      return [];
    case "user":
      return [
        {
          role: "user",
          content: message.content.map((part) => (part.type === "text" ? text(part.text) : contentOf(part, kinds))),
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

function contentOf({ mediaType, data }: LanguageModelV4FilePart, kinds: Kinds): PromptApiContent {
  if (data.type === "text") return text(data.text);
  const type = kindOf(mediaType);
  const bytes = data.type === "data" ? bytesIn(data.data) : undefined;
  const isRead = (type === "image" || type === "audio") && kinds.has(type);
  return isRead && bytes !== undefined ? { type, value: bytes } : text(leftOut(mediaType));
}

function bytesIn(data: string | Uint8Array): Uint8Array | undefined {
  if (typeof data !== "string") return data;
  const base64 = base64In(data);
  return base64 === undefined ? undefined : Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
