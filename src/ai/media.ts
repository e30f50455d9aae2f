/** In place of a file that a model cannot be given: a refusal would fail its thread in each later run. */
export const leftOut = (type: string): string =>
  `[A part of this message, of type ${type}, cannot be read and was left out]`;

/** The kind of a file of this media type, by AG-UI's names: `image/png`, `image/*` and `image` are images. */
export const kindOf = (mediaType: string | undefined): "image" | "audio" | "video" | "document" =>
  (["image", "audio", "video"] as const).find((kind) => mediaType?.split("/")[0] === kind) ?? "document";

/** Bytes as base64, which may be given in its alphabet for URLs (RFC 4648); undefined where there are none. */
export function base64In(data: string): string | undefined {
  const base64 = data.replaceAll("-", "+").replaceAll("_", "/");
  try {
    return atob(base64) === "" ? undefined : base64;
  } catch {
    return undefined;
  }
}
