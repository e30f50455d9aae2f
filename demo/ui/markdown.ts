import DOMPurify from "dompurify";
import { directive, Directive } from "lit/directive.js";
import { Marked, type Token } from "marked";
import { boundedTables, lex } from "./bounded-lexer.js";

/** Headings of an answer stand below the page's own. */
const HEADING_OFFSET = 1;

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const marked = new Marked(boundedTables, {
  gfm: true,
  renderer: {
    // An agent's text is never markup: tags in it are shown as they are written.
    html: ({ text }) => escapeHtml(text),
    // Images would be fetched from anywhere: their text stands for them.
    image: ({ text, href }) => escapeHtml(text === "" ? href : text),
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + HEADING_OFFSET);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
  },
});

const ALLOWED_TAGS =
  "a b blockquote br code del div em h1 h2 h3 h4 h5 h6 hr i li ol p pre s strong sub sup table tbody td th thead tr ul".split(
    " ",
  );

function renderBlock(token: Token): HTMLElement {
  const fragment = DOMPurify.sanitize(marked.parser([token]), {
    RETURN_DOM_FRAGMENT: true,
    ALLOWED_TAGS,
    ALLOWED_ATTR: ["href", "title", "align", "start"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
  for (const link of fragment.querySelectorAll("a")) tameLink(link);
  const block = document.createElement("div");
  block.className = "block";
  block.append(fragment);
  for (const wide of block.querySelectorAll<HTMLElement>(":scope > table, :scope > pre")) {
    const scroller = document.createElement("div");
    scroller.className = "scroll-x";
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "group");
    scroller.setAttribute("aria-label", wide.localName === "table" ? "Table" : "Code");
    wide.replaceWith(scroller);
    scroller.append(wide);
  }
  return block;
}

function tameLink(link: HTMLAnchorElement): void {
  const target = URL.parse(link.getAttribute("href") ?? "");
  if (target && ["http:", "https:", "mailto:"].includes(target.protocol)) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  } else {
    link.replaceWith(...link.childNodes);
  }
}

interface Block {
  readonly raw: string;
  /** None for blank lines and definitions. */
  readonly element: HTMLElement | null;
}

/** So many blocks at the end of a growing text may still change their kind: a list goes on after a blank line. */
const UNSETTLED = 3;

/** Shows Markdown that grows at its end. What a frame costs depends on the last blocks, not on the whole answer. */
class MarkdownView {
  readonly element = document.createElement("div");
  #text = "";
  #blocks: Block[] = [];
  /** Whether the blocks' lengths are offsets in the text, and no block depends on a link definition in another. */
  #separable = true;

  constructor() {
    this.element.className = "markdown";
  }

  show(given: string): void {
    const text = given.includes("\r") ? given.replace(/\r\n?/g, "\n") : given;
    if (text === this.#text) return;
    const grows = text.startsWith(this.#text);
    if (!grows) this.#separable = true;
    let kept = grows && this.#separable ? Math.max(0, this.#blocks.length - UNSETTLED) : 0;
    let tokens = lex(text.slice(lengthOf(this.#blocks.slice(0, kept))), marked.defaults);
    if (tokens.some((token) => token.type === "def")) {
      if (kept > 0) tokens = lex(text, marked.defaults);
      kept = 0;
      this.#separable = false;
    }
    if (this.#separable) {
      while (tokens[0] && this.#blocks[kept]?.raw === tokens[0].raw) {
        tokens.shift();
        kept++;
      }
    }
    for (const stale of this.#blocks.splice(kept)) stale.element?.remove();
    for (const token of tokens) {
      const element = token.type === "space" || token.type === "def" ? null : renderBlock(token);
      if (element) this.element.append(element);
      this.#blocks.push({ raw: token.raw, element });
    }
    this.#text = text;
    if (lengthOf(this.#blocks) !== text.length) this.#separable = false;
  }
}

const lengthOf = (blocks: readonly Block[]): number => blocks.reduce((sum, block) => sum + block.raw.length, 0);

class MarkdownDirective extends Directive {
  readonly #view = new MarkdownView();

  render(text: string): HTMLElement {
    this.#view.show(text);
    return this.#view.element;
  }
}

/** Renders Markdown, sanitised. */
export const markdown = directive(MarkdownDirective);
