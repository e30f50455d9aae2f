import { type DBSchema, type IDBPDatabase, openDB } from "idb";
import type { TextFile } from "./intake.js";

/** The demo's own database. History: 1: store "files". */
export const FILES_DB = "reader-files";
const VERSION = 1;

/** What a message carries of a file. */
export interface FileRef {
  /** SHA-256 of the text's UTF-8, hex. */
  readonly id: string;
  readonly name: string;
  readonly type: string;
  /** Bytes of the text's UTF-8. */
  readonly size: number;
}

export interface StoredFile extends FileRef {
  readonly text: string;
  /** When it was first put, in ms since the Unix epoch. */
  readonly addedAt: number;
}

interface FilesSchema extends DBSchema {
  files: { key: string; value: StoredFile };
}

/** `missing`: this browser does not have the file. `full`: no room. `unavailable`: the browser keeps no data here, or lost it. */
export type FileStoreErrorCode = "missing" | "full" | "unavailable";

export class FileStoreError extends Error {
  override readonly name = "FileStoreError";
  constructor(
    readonly code: FileStoreErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

let opened: Promise<IDBPDatabase<FilesSchema>> | undefined;

function database(): Promise<IDBPDatabase<FilesSchema>> {
  if (opened) return opened;
  const opening = openDB<FilesSchema>(FILES_DB, VERSION, {
    upgrade(db) {
      db.createObjectStore("files", { keyPath: "id" });
    },
    /** Another context upgrades or deletes the database: it must not wait for this one. */
    blocking: () => void closeFiles(),
    terminated: () => {
      opened = undefined;
    },
  });
  opened = opening;
  opening.catch(() => {
    if (opened === opening) opened = undefined;
  });
  return opening;
}

/** Closes the connection; the next call opens it again. */
export async function closeFiles(): Promise<void> {
  const closing = opened;
  opened = undefined;
  await closing?.then(
    (db) => db.close(),
    () => undefined,
  );
}

/**
 * Keeps a file under the hash of its text. The same text put twice is kept once; the reference bears the name given.
 * @throws {FileStoreError}
 */
export async function putFile(file: TextFile): Promise<FileRef> {
  const bytes = new TextEncoder().encode(file.text);
  const ref: FileRef = { id: await sha256(bytes), name: file.name, type: file.type, size: bytes.byteLength };
  try {
    const db = await database();
    if ((await db.getKey("files", ref.id)) === undefined) {
      // The chat will point at it for good, so it must survive a power cut as the message does.
      const tx = db.transaction("files", "readwrite", { durability: "strict" });
      await Promise.all([tx.store.put({ ...ref, text: file.text, addedAt: Date.now() }), tx.done]);
    }
  } catch (cause) {
    throw asStoreError(cause);
  }
  return ref;
}

/** @throws {FileStoreError} */
export async function getFile(id: string): Promise<StoredFile> {
  let found: unknown;
  try {
    found = await (await database()).get("files", id);
  } catch (cause) {
    throw asStoreError(cause);
  }
  if (!isStoredFile(found)) throw new FileStoreError("missing", "The file is not in this browser. Drop it again.");
  return found;
}

/** A SHA-256 in hex. */
export const isFileId = (id: string): boolean => /^[0-9a-f]{64}$/.test(id);

/** Hex of the SHA-256 of a text's UTF-8. */
export const hashText = (text: string): Promise<string> => sha256(new TextEncoder().encode(text));

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function isStoredFile(value: unknown): value is StoredFile {
  if (typeof value !== "object" || value === null) return false;
  const file = value as Partial<Record<keyof StoredFile, unknown>>;
  return typeof file.id === "string" && typeof file.text === "string" && typeof file.name === "string";
}

function asStoreError(cause: unknown): FileStoreError {
  const name = cause instanceof Error || cause instanceof DOMException ? cause.name : "";
  return name === "QuotaExceededError"
    ? new FileStoreError("full", "The browser has no room for this file. Free some space and drop it again.", { cause })
    : new FileStoreError(
        "unavailable",
        "The browser could not open its store for files. Reload the page and try again.",
        {
          cause,
        },
      );
}
