import type { FileRef } from "../documents/files.js";

/** What is typed and attached in a thread and not sent yet. */
export interface Draft {
  readonly text: string;
  readonly files: readonly FileRef[];
  /** What of it was sent last: once the thread has that message, it is no draft any more. */
  readonly sent?: { readonly messageId: string; readonly text: string; readonly fileIds: readonly string[] };
}

export const EMPTY_DRAFT: Draft = { text: "", files: [] };

export const isEmptyDraft = (draft: Draft): boolean => draft.text.trim() === "" && draft.files.length === 0;

/** The draft without what was sent. What was typed or attached meanwhile stays. */
export function withoutSent({ text, files, sent }: Draft): Draft {
  return {
    text: text === sent?.text ? "" : text,
    files: files.filter(({ id }) => !sent?.fileIds.includes(id)),
  };
}

/** The second tab inside this one shares its memory, but has drafts of its own. */
const PLACE = window === window.top ? "reader:draft:" : "reader:second:";

const keyOf = (threadId: string): string => `${PLACE}${threadId}`;

/** Survives a reload of this tab. Each tab has drafts of its own. */
export function loadDraft(threadId: string): Draft {
  try {
    const found: unknown = JSON.parse(sessionStorage.getItem(keyOf(threadId)) ?? "null");
    return isDraft(found) ? found : EMPTY_DRAFT;
  } catch {
    return EMPTY_DRAFT;
  }
}

export function saveDraft(threadId: string, draft: Draft): void {
  try {
    if (draft.text === "" && draft.files.length === 0) sessionStorage.removeItem(keyOf(threadId));
    else sessionStorage.setItem(keyOf(threadId), JSON.stringify(draft));
  } catch {
    // No storage or no room: the draft lives in the page only.
  }
}

function isDraft(value: unknown): value is Draft {
  if (typeof value !== "object" || value === null) return false;
  const { text, files, sent } = value as Record<string, unknown>;
  return typeof text === "string" && Array.isArray(files) && files.every(isFileRef) && isSent(sent);
}

function isSent(value: unknown): value is Draft["sent"] {
  if (value === undefined) return true;
  if (typeof value !== "object" || value === null) return false;
  const { messageId, text, fileIds } = value as Record<string, unknown>;
  return typeof messageId === "string" && typeof text === "string" && Array.isArray(fileIds);
}

function isFileRef(value: unknown): value is FileRef {
  if (typeof value !== "object" || value === null) return false;
  const { id, name, type, size } = value as Record<string, unknown>;
  return typeof id === "string" && typeof name === "string" && typeof type === "string" && typeof size === "number";
}
