/** A name as it crosses into a page. */
export type NamePattern = { is: string } | { matches: string; flags: string } | null;

export function namePattern(name: string | RegExp | undefined): NamePattern {
  if (name === undefined) return null;
  return typeof name === "string" ? { is: name } : { matches: name.source, flags: name.flags };
}

/**
 * The shown elements of this role and name, open shadow trees included. Runs in the page, so it stands alone. A subset
 * of the accessible name computation (https://www.w3.org/TR/accname-1.2/), the same in all engines; axe has the rest.
 */
export function findAccessible(role: string, name: NamePattern): Element[] {
  const implicitRole = (element: Element): string | undefined => {
    const tag = element.localName;
    const type = element.getAttribute("type")?.toLowerCase() ?? "";
    if (tag === "input") {
      if (["button", "submit", "reset", "image"].includes(type)) return "button";
      if (["checkbox", "radio"].includes(type)) return type;
      if (type === "search") return "searchbox";
      return ["", "text", "email", "tel", "url"].includes(type) ? "textbox" : undefined;
    }
    if (tag === "a") return element.hasAttribute("href") ? "link" : undefined;
    if (tag === "select") return "combobox";
    if (/^h[1-6]$/.test(tag)) return "heading";
    const roles: Record<string, string> = {
      article: "article",
      aside: "complementary",
      button: "button",
      dialog: "dialog",
      li: "listitem",
      main: "main",
      nav: "navigation",
      ol: "list",
      output: "status",
      progress: "progressbar",
      summary: "button",
      table: "table",
      textarea: "textbox",
      ul: "list",
    };
    return roles[tag];
  };
  const squeeze = (text: string | null | undefined): string => (text ?? "").replace(/\s+/g, " ").trim();
  const textOf = (node: Node): string => {
    if (node.nodeType === Node.TEXT_NODE) return node.textContent ?? "";
    if (!(node instanceof Element)) return "";
    if (node.getAttribute("aria-hidden") === "true" || ["script", "style"].includes(node.localName)) return "";
    const label = node.getAttribute("aria-label") ?? node.getAttribute("alt");
    if (label !== null) return label;
    const children = node instanceof HTMLSlotElement ? node.assignedNodes() : (node.shadowRoot ?? node).childNodes;
    return [...children].map(textOf).join(" ");
  };
  const nameOf = (element: Element): string => {
    const root = element.getRootNode() as Document | ShadowRoot;
    const ids = element.getAttribute("aria-labelledby")?.split(/\s+/) ?? [];
    const named = squeeze(ids.map((id) => textOf(root.getElementById(id) ?? new Text(""))).join(" "));
    if (named) return named;
    const label = squeeze(element.getAttribute("aria-label"));
    if (label) return label;
    const labels = squeeze([...((element as HTMLInputElement).labels ?? [])].map(textOf).join(" "));
    if (labels) return labels;
    const fromContent = ["button", "link", "heading", "listitem", "option", "tab", "menuitem"];
    const content = fromContent.includes(role) ? squeeze(textOf(element)) : "";
    return content || squeeze(element.getAttribute("title")) || squeeze(element.getAttribute("placeholder"));
  };
  const isShown = (element: Element): boolean =>
    element.checkVisibility({ visibilityProperty: true }) && element.closest("[aria-hidden=true],[inert]") === null;
  const fits = (element: Element): boolean => {
    if ((element.getAttribute("role") ?? implicitRole(element)) !== role || !isShown(element)) return false;
    if (name === null) return true;
    return "is" in name ? nameOf(element) === name.is : new RegExp(name.matches, name.flags).test(nameOf(element));
  };
  const found: Element[] = [];
  const walk = (root: Document | ShadowRoot): void => {
    for (const element of root.querySelectorAll("*")) {
      if (fits(element)) found.push(element);
      if (element.shadowRoot) walk(element.shadowRoot);
    }
  };
  walk(document);
  return found;
}

/** The first file field of the page, shown or not, open shadow trees included. Runs in the page. */
export function findFileField(): Element | null {
  const search = (root: Document | ShadowRoot): Element | null => {
    const field = root.querySelector("input[type=file]");
    if (field) return field;
    for (const element of root.querySelectorAll("*")) {
      const below = element.shadowRoot && search(element.shadowRoot);
      if (below) return below;
    }
    return null;
  };
  return search(document);
}

/** What a person reads in an element: its text, shadow trees included. Runs in the page. */
export function readText(element: Element): string {
  if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) return element.value;
  return (element as HTMLElement).innerText;
}
