import type { Tab } from "./browser.js";

/** Asks another server, and adds a script to the page. @returns which of its directives have refused something, in order */
export const refusedByPolicy = (tab: Tab): Promise<readonly string[]> =>
  tab.evaluate(async () => {
    const refused = (): Promise<string> =>
      new Promise((resolve) =>
        addEventListener("securitypolicyviolation", ({ effectiveDirective }) => resolve(effectiveDirective), {
          once: true,
        }),
      );
    const asking = refused();
    await fetch("http://127.0.0.1:9/").catch(() => undefined);
    const first = await asking;
    const adding = refused();
    document.body.append(Object.assign(document.createElement("script"), { textContent: "0" }));
    return [first, await adding];
  });
