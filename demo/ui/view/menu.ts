import { html, nothing, render, type TemplateResult } from "lit/html.js";
import { ref } from "lit/directives/ref.js";
import { icons } from "../icons.js";

export interface MenuItem {
  readonly label: string;
  readonly icon: TemplateResult;
  readonly act: () => void;
  /** It takes something away. */
  readonly isDanger?: boolean;
}

/** About the height of an item and of what is around all of them, in px. */
const ITEM = 38;
const AROUND = 16;
/** Between the button and its menu. */
const GAP = 4;

/**
 * A menu button (https://www.w3.org/WAI/ARIA/apg/patterns/menu-button/): arrows, Home, End and first letters walk, Escape
 * and Tab leave. The menu is in the top layer, so nothing cuts it off, and is filled when it opens.
 *
 * @param label of the button
 * @param items asked for each time that it opens
 */
export function menuButton(label: string, items: () => readonly MenuItem[]): TemplateResult {
  return html`<span class="menu-anchor" ${ref(pair)}>
    <button
      type="button"
      class="quiet icon-only small"
      aria-label=${label}
      title=${label}
      aria-haspopup="menu"
      aria-expanded="false"
      @keydown=${openByArrow}
    >
      ${icons.more}
    </button>
    <div
      class="menu"
      role="menu"
      popover="auto"
      aria-label=${label}
      @beforetoggle=${(event: ToggleEvent) => event.newState === "open" && fill(partsOf(event), items())}
      @toggle=${toggled}
      @keydown=${walk}
    ></div>
  </span>`;
}

interface Parts {
  readonly button: HTMLButtonElement;
  readonly menu: HTMLElement;
}

function partsIn(anchor: Element): Parts {
  return { button: anchor.querySelector("button")!, menu: anchor.querySelector<HTMLElement>("[popover]")! };
}

const partsOf = (event: Event): Parts => partsIn((event.currentTarget as Element).closest(".menu-anchor")!);

/** By reference, since ids of threads are anything. The browser then opens and closes the menu with its button. */
function pair(anchor: Element | undefined): void {
  if (anchor) partsIn(anchor).button.popoverTargetElement = partsIn(anchor).menu;
}

function fill({ button, menu }: Parts, items: readonly MenuItem[]): void {
  const choose = (act: () => void): void => {
    menu.hidePopover();
    button.focus();
    act();
  };
  const item = ({ label, icon, act, isDanger = false }: MenuItem): TemplateResult =>
    html`<button
      type="button"
      role="menuitem"
      tabindex="-1"
      class=${isDanger ? "is-danger" : nothing}
      @click=${() => choose(act)}
    >
      ${icon}${label}
    </button>`;
  render(items.map(item), menu);
  const { top, bottom, right } = button.getBoundingClientRect();
  const isAbove = bottom + GAP + items.length * ITEM + AROUND > innerHeight && top > innerHeight / 2;
  // Set as properties: the page's policy forbids style attributes.
  menu.style.right = `${Math.max(8, document.documentElement.clientWidth - right)}px`;
  menu.style.top = isAbove ? "auto" : `${bottom + GAP}px`;
  menu.style.bottom = isAbove ? `${innerHeight - top + GAP}px` : "auto";
}

function toggled(event: ToggleEvent): void {
  const { button, menu } = partsOf(event);
  const isOpen = event.newState === "open";
  button.setAttribute("aria-expanded", String(isOpen));
  if (isOpen) menu.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  // Nothing that a search of the page, or a test, would find.
  else render(nothing, menu);
}

function openByArrow(event: KeyboardEvent): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  partsOf(event).menu.showPopover();
}

function walk(event: KeyboardEvent): void {
  const { button, menu } = partsOf(event);
  const items = [...menu.querySelectorAll<HTMLElement>("[role=menuitem]")];
  const at = items.findIndex((item) => item === document.activeElement);
  const letter =
    event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey ? event.key.toLowerCase() : undefined;
  const begins = (item: HTMLElement): boolean =>
    item.innerText
      .trim()
      .toLowerCase()
      .startsWith(letter ?? "\n");
  const next =
    {
      ArrowDown: items[(at + 1) % items.length],
      ArrowUp: items.at(at - 1),
      Home: items[0],
      End: items.at(-1),
    }[event.key] ?? [...items.slice(at + 1), ...items].find(begins);
  if (event.key === "Escape" || event.key === "Tab") {
    menu.hidePopover();
    button.focus();
    if (event.key === "Tab") return;
  } else if (next) next.focus();
  else return;
  event.preventDefault();
}
