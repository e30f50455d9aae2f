import type { ContentPart, DocumentPart, Message } from "@ag-ui/core";
import { type FileRef, hashText, isFileId } from "./files.js";
import { cleanName, typeOfPaste } from "./intake.js";

const SCHEME = "reader-file:";

/** Text in a message beyond this many characters counts as a document. */
export const PASTE_LIMIT = 2_000;

/** The content of a user message: the text where there is some, then a part for each file. The files' text stays out of the chat. */
export function fileMessage(text: string, files: FileRef | readonly FileRef[]): ContentPart[] {
  const refs = "id" in files ? [files] : files;
  return [
    ...(text.trim() === "" ? [] : [{ type: "text" as const, text }]),
    ...refs.map((ref): DocumentPart => ({
      type: "document",
      source: { type: "url", value: SCHEME + ref.id, mimeType: ref.type },
      metadata: { name: ref.name, size: ref.size },
    })),
  ];
}

/** The file that a part points at; undefined for every other part. */
export function fileRefOf(part: ContentPart): FileRef | undefined {
  if (part.type !== "document" || part.source.type !== "url" || !part.source.value.startsWith(SCHEME)) return undefined;
  const id = part.source.value.slice(SCHEME.length);
  if (!isFileId(id)) return undefined;
  const metadata: unknown = part.metadata;
  const { name, size } = (typeof metadata === "object" && metadata !== null ? metadata : {}) as Record<string, unknown>;
  return {
    id,
    name: cleanName(typeof name === "string" ? name : ""),
    type: part.source.mimeType ?? "text/plain",
    size: typeof size === "number" && Number.isFinite(size) && size >= 0 ? size : 0,
  };
}

/** A document of the thread. `text` is there where the message itself holds it. */
export interface ThreadDocument extends FileRef {
  readonly text?: string;
}

/** What the thread's messages ask for. */
export interface Request {
  /** Every document, oldest first, each once. */
  readonly documents: readonly ThreadDocument[];
  /** Those that came after the last answer: they are to be read now. */
  readonly fresh: readonly ThreadDocument[];
  /** What the person wrote last, without pasted documents. */
  readonly question: string;
}

export async function requestOf(messages: readonly Message[]): Promise<Request> {
  const documents = new Map<string, ThreadDocument>();
  let fresh = new Map<string, ThreadDocument>();
  let question = "";
  for (const message of messages) {
    if (message.role === "assistant" || message.role === "tool") fresh = new Map();
    if (message.role !== "user") continue;
    const parts: ContentPart[] =
      typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
    const words: string[] = [];
    for (const part of parts) {
      let document: ThreadDocument | undefined = fileRefOf(part);
      if (part.type === "text") {
        const pasted = splitPaste(part.text);
        words.push(pasted.question);
        if (pasted.text !== undefined) document = await pastedDocument(pasted.text);
      }
      if (!document) continue;
      documents.delete(document.id);
      documents.set(document.id, document);
      fresh.set(document.id, document);
    }
    question = words.join("\n").trim();
  }
  return { documents: [...documents.values()], fresh: [...fresh.values()], question };
}

const asks = (part: string): boolean => part.length <= 300 && part.trimEnd().endsWith("?");

/** Tells a pasted document from a question put before or after it: a short paragraph that ends with a question mark. */
export function splitPaste(text: string): { question: string; text?: string } {
  if (text.length <= PASTE_LIMIT) return { question: text };
  const first = text.indexOf("\n\n");
  if (first !== -1 && asks(text.slice(0, first)))
    return { question: text.slice(0, first), text: text.slice(first + 2) };
  const last = text.lastIndexOf("\n\n");
  if (last !== -1 && asks(text.slice(last + 2))) return { question: text.slice(last + 2), text: text.slice(0, last) };
  return { question: "", text };
}

async function pastedDocument(text: string): Promise<ThreadDocument> {
  const id = await hashText(text);
  return { id, name: "Pasted text", type: typeOfPaste(text), size: text.length, text };
}
