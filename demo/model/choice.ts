/** Which model answers: what the page tells the worker anew with each call. */
export interface ModelChoice {
  /** Base address of a server that speaks OpenAI's chat completions, or {@link BROWSER}. */
  readonly address: string;
  readonly name: string;
}

/** In the place of an address: the browser's own model, which a tab runs for the worker. */
export const BROWSER = "browser:";

export const CHOICE_HEADER = "x-model";
export const KEY_HEADER = "x-model-key";

/** The model that comes with the demo's server. */
export const scripted = (): ModelChoice => ({ address: new URL("/model/v1", location.origin).href, name: "scripted" });

export function isChoice(value: unknown): value is ModelChoice {
  if (typeof value !== "object" || value === null) return false;
  const { address, name } = value as Record<string, unknown>;
  return typeof name === "string" && typeof address === "string" && (address === BROWSER || isAddress(address));
}

export const isAddress = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? "");

/** Of this computer: it needs no network. The page's own server is so only where the page is. */
export function isLocal(address: string): boolean {
  const host = URL.parse(address)?.hostname ?? "";
  return address === BROWSER || /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host);
}

/** Headers for a call. A key goes along only where there is one. */
export const headersOf = (choice: ModelChoice, key: string): Record<string, string> => ({
  // Encoded: a header takes no text of any kind.
  [CHOICE_HEADER]: encodeURIComponent(JSON.stringify(choice)),
  ...(key !== "" && { [KEY_HEADER]: encodeURIComponent(key) }),
});

/** The choice that headers bring; the scripted model where they bring none. */
export function choiceIn(headers: Readonly<Record<string, string>>): { choice: ModelChoice; key: string } {
  try {
    const choice: unknown = JSON.parse(decodeURIComponent(headers[CHOICE_HEADER] ?? ""));
    if (isChoice(choice)) return { choice, key: decodeURIComponent(headers[KEY_HEADER] ?? "") };
  } catch {
    // As none.
  }
  return { choice: scripted(), key: "" };
}
