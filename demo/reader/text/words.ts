/** A word: letters and digits, with apostrophes and hyphens inside. */
export const WORD = /[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu;

/** A word as it is counted and searched: small letters, straight apostrophes. */
export const lower = (word: string): string => word.toLowerCase().replace(/’/g, "'");

/** Brings the simple plural and possessive of English to the singular. Wrong at times, but alike for text and question. */
export function fold(word: string): string {
  const small = lower(word).replace(/'s$/, "");
  if (small.length < 4) return small;
  if (small.endsWith("ies") && small.length > 4) return `${small.slice(0, -3)}y`;
  if (/(?:ss|us|is)$/.test(small) || !small.endsWith("s")) return small;
  return /(?:sh|ch|x|ss|zz)es$/.test(small) ? small.slice(0, -2) : small.slice(0, -1);
}

/** A text of Markdown without its marks for emphasis, code, links and quotes. Takes a few thousand characters at most. */
export function plain(markdown: string): string {
  return markdown
    .replace(/!?\[([^\]\n]{0,300})\]\([^)\s]{0,500}(?:\s"[^"\n]{0,200}")?\)/g, "$1")
    .replace(/(\*\*|__)(?=\S)([^\n]{1,500}?\S?)\1/g, "$2")
    .replace(/(^|[\s(])[*_](?=\S)([^*_\n]{1,500})[*_](?=[\s).,;:!?]|$)/g, "$1$2")
    .replace(/`([^`\n]{1,300})`/g, "$1")
    .replace(/^ {0,3}(?:>|[-*+]|\d{1,3}[.)])[ \t]+/gm, "");
}
