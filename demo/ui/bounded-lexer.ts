import { Lexer, type MarkedExtension, type Token, type TokensList } from "marked";

/*
 * Agents write anything, and Markdown's grammar has texts of a few kilobytes that overflow the stack of a parser, or keep
 * it busy for minutes. What is too costly is shown as plain text; the rest of the answer is Markdown as ever.
 */

/** Quotes and lists inside one another. */
const MAX_DEPTH = 24;
/** Longer texts are plain: every block of them would be parsed, and stand in the page. */
const MAX_TEXT = 500_000;
/** What looking for emphasis and links costs at most: characters of a paragraph, times the signs that may begin or end one. */
const MAX_INLINE = 400_000;
/** Addresses are looked for in every word, from each of its characters on. */
const MAX_WORD = 2_000;
/** A row is filled up to the width of its table. */
const MAX_CELLS = 20_000;

const plain = (text: string): Token => ({ type: "text", raw: text, text, escaped: false });
const paragraph = (text: string): Token => ({ type: "paragraph", raw: text, text, tokens: [plain(text)] });

const LONG_WORD = new RegExp(`\\S{${MAX_WORD}}`);

function isCostly(text: string): boolean {
  if (text.length > MAX_WORD && LONG_WORD.test(text)) return true;
  let signs = 0;
  for (const sign of text) if ("*_~[]`!<".includes(sign)) signs++;
  return signs * text.length > MAX_INLINE;
}

/** The inner of emphasis, links, quotes and lists comes here as well. */
class BoundedLexer extends Lexer {
  #depth = 0;

  override blockTokens(text: string, tokens?: Token[], clipped?: boolean): Token[];
  override blockTokens(text: string, tokens?: TokensList, clipped?: boolean): TokensList;
  override blockTokens(text: string, tokens: Token[] = [], clipped = false): Token[] {
    if (this.#depth > MAX_DEPTH) {
      tokens.push(paragraph(text));
      return tokens;
    }
    this.#depth++;
    try {
      return super.blockTokens(text, tokens, clipped);
    } finally {
      this.#depth--;
    }
  }

  override inlineTokens(text: string, tokens: Token[] = []): Token[] {
    if (!isCostly(text)) return super.inlineTokens(text, tokens);
    tokens.push(plain(text));
    return tokens;
  }
}

/** A table whose rows would be filled up to far more than was written. */
export const boundedTables: MarkedExtension = {
  tokenizer: {
    table(text) {
      const end = text.indexOf("\n");
      const isTable = end !== -1 && /^[ |:-]*-[ |:-]*(\n|$)/.test(text.slice(end + 1, end + 1 + MAX_CELLS));
      if (!isTable) return false;
      const block = /^[^]*?(?=\n[ \t]*\n|$)/.exec(text)![0];
      const width = text.slice(0, end).split("|").length;
      if (width * block.split("\n").length <= MAX_CELLS) return false;
      // Takes the table's place: marked asks for no more than what it shows.
      return paragraph(block) as never;
    },
  },
};

/** The blocks of a text; never throws, and takes time in proportion to its length. */
export function lex(text: string, options: Lexer["options"]): Token[] {
  if (text.length > MAX_TEXT) return [paragraph(text)];
  try {
    return new BoundedLexer(options).lex(text);
  } catch {
    // A fault of the parser must not cost the answer.
    return [paragraph(text)];
  }
}
