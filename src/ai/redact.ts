/** What stands for a secret. */
const HIDDEN = "[hidden]";

/** A key shorter than this would be found in ordinary words. */
const MIN_SECRET = 6;

/** Forms that keys have, whoever gave them: a page by a header, or a worker in the code of its model. */
const FORMS: readonly RegExp[] = [
  /\b(?:bearer|basic)\s+[\w.~+/=-]{6,}/gi,
  /\b(?:sk|pk|rk|gsk|xai|hf|r8|key|api)[-_][\w*.-]{8,}/gi,
  /\bAIza[\w-]{10,}/g,
];

/** Longer than names of models, which have digits and dashes as well; a secret where it has letters and digits. */
const LONG = /[\w-]{40,}/g;

/** What stands before the host of a URL, and its query. Each URL is matched with or without: the search stays linear. */
const IN_URL: readonly (readonly [RegExp, string])[] = [
  [/(\bhttps?:\/\/)[^\s/@]+@/gi, "$1"],
  [/(\bhttps?:\/\/[^\s?"'<>]*)(?:\?[^\s"'<>)]*)?/gi, "$1"],
];

/** A header takes no text of any kind: a page may encode its key as part of a URL. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** Takes out of a text what may be a secret. */
export type Redact = (text: string) => string;

/**
 * Servers repeat keys in their errors: the header that they refuse, the URL, the beginning of the key.
 *
 * @param headers those of the call: none of their values is told
 */
export function redactor(headers: Readonly<Record<string, string>>): Redact {
  const secrets = Object.values(headers)
    .flatMap((value) => [value, decoded(value), ...value.split(/[\s,;=]+/)])
    .filter((value) => value.length >= MIN_SECRET)
    .sort((a, b) => b.length - a.length);
  return (text) => {
    let told = text;
    for (const secret of secrets) told = told.replaceAll(secret, HIDDEN);
    for (const [form, instead] of IN_URL) told = told.replace(form, instead);
    for (const form of FORMS) told = told.replace(form, HIDDEN);
    return told.replace(LONG, (word) => (/\d/.test(word) && /[a-z]/i.test(word) ? HIDDEN : word));
  };
}
