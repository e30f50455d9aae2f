/** The key of the entries that hold the keys of an encrypted space. No thread has it. */
export const KEYS_THREAD = "keys";

/** The key of a thread's entries: its id, digested, so that it may be part of any name. 43 characters of base64url. */
export async function keyOfThread(threadId: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(threadId));
  const text = btoa(String.fromCharCode(...new Uint8Array(digest)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
