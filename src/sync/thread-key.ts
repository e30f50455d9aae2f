/** The key of the entries that hold the keys of an encrypted space. No thread has it. */
export const KEYS_THREAD = "keys";

/** UTF-8 has no halves of surrogate pairs: ids that differ in them alone would have one key. */
const isUnicode = (text: string): boolean => !/\p{Surrogate}/u.test(text);

/** The key of a thread's entries: its id, digested, so that it may be part of any name. 43 characters of base64url. */
export async function keyOfThread(threadId: string): Promise<string> {
  const bytes = new TextEncoder().encode(isUnicode(threadId) ? threadId : `\0${JSON.stringify(threadId)}`);
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  const text = btoa(String.fromCharCode(...new Uint8Array(digest)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
