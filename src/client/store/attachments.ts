import type { ContentPart } from "@ag-ui/core";

const PART_TYPES = ["image", "audio", "video"] as const;

/** Bytes that are turned into text at a time: arguments of a call are limited in number. */
const STEP = 0x8000;

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += STEP) binary += String.fromCharCode(...bytes.subarray(at, at + STEP));
  return btoa(binary);
}

/**
 * A file as a part of a message: its bytes in base64, as image, audio, video or document by its media type; the name is
 * in `metadata.filename`. Errors: those of reading the file.
 */
export async function partOfFile(file: Blob): Promise<ContentPart> {
  const mimeType = file.type === "" ? "application/octet-stream" : file.type;
  const type = PART_TYPES.find((known) => mimeType.startsWith(`${known}/`)) ?? "document";
  const value = base64(new Uint8Array(await file.arrayBuffer()));
  const metadata = file instanceof File ? { metadata: { filename: file.name } } : {};
  return { type, source: { type: "data", value, mimeType }, ...metadata };
}
