import type { Token, Tokens } from "marked";

const isHeading = (token: Token): token is Tokens.Heading => token.type === "heading";

/** The text of a heading as it is read, without its marks. */
const plain = (text: string): string => text.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, "");

/** The ids of a page's headings, as code hosts make them: links to headings work there and in the demo. */
export function headingIds(tokens: readonly Token[]): string[] {
  const counts = new Map<string, number>();
  return tokens.filter(isHeading).map(({ text }) => {
    const id = plain(text)
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-");
    const count = counts.get(id) ?? 0;
    counts.set(id, count + 1);
    return count === 0 ? id : `${id}-${count}`;
  });
}
