import type { Message } from "@ag-ui/client";
import type { RuntimeConnection } from "ag-ui-local-runtime/client";
import { fileRefOf } from "../documents/message.js";
import { isShown } from "./shown.js";

/** So many messages are read at a time. */
const PAGE = 500;

/** All messages of a thread, also those that are not shown. Errors: RunnerError of the connection or the storage. */
export async function allMessages(runtime: RuntimeConnection, threadId: string): Promise<readonly Message[]> {
  let all: readonly Message[] = [];
  for (;;) {
    const before = all[0]?.id;
    const page = await runtime.threads.messages(threadId, { limit: PAGE, ...(before !== undefined && { before }) });
    all = [...page.messages, ...all];
    if (!page.earlier || page.messages.length === 0) return all;
  }
}

/** What a person reads of a thread, as Markdown: questions with the names of their files, answers, calls of tools. */
export function threadMarkdown(title: string, agent: string, messages: readonly Message[]): string {
  const parts = [`# ${title.replace(/\s+/g, " ")}`];
  let speaker = "";
  for (const message of messages.filter(isShown)) {
    const text = textOf(message);
    if (text === "") continue;
    const by = message.role === "user" ? "You" : agent;
    if (by !== speaker || message.role === "user") parts.push(`## ${by}`);
    speaker = by;
    parts.push(text);
  }
  return `${parts.join("\n\n")}\n`;
}

function textOf(message: Message): string {
  switch (message.role) {
    case "user": {
      const given =
        typeof message.content === "string" ? [{ type: "text" as const, text: message.content }] : message.content;
      return given
        .map((part) => (part.type === "text" ? part.text : `*Attached: ${fileRefOf(part)?.name ?? part.type}*`))
        .join("\n\n");
    }
    case "assistant": {
      const calls = (message.toolCalls ?? []).map(
        ({ function: { name, arguments: given } }) => `*Called \`${name}\` with \`${given}\`*`,
      );
      return [...calls, message.content ?? ""].filter((text) => text !== "").join("\n\n");
    }
    // How it chose is not what it said.
    default:
      return "";
  }
}

/** The name of a file for a thread of this title. */
export const fileNameOf = (title: string): string =>
  `${
    title
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .replace(/^-|-$/g, "")
      .slice(0, 60)
      .toLowerCase() || "thread"
  }.md`;

/** Saves a text as a file, by the browser's own way of doing so. */
export function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  link.download = name;
  link.click();
  // The browser has begun to read by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
