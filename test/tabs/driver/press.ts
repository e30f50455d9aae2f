import type { Tab } from "./browser.js";

/**
 * Presses a button by its text, where it is by then: a real click goes to where the button was a moment ago, and while an
 * answer streams or a list loads, buttons move. A tab that is not shown takes no real clicks either.
 */
export const press = (tab: Tab, name: string): Promise<unknown> =>
  tab.waitFor((wanted) => {
    const found = [...document.querySelectorAll("button")].find(({ innerText }) => innerText === wanted);
    if (found === undefined || found.disabled) return false;
    found.click();
    return true;
  }, name);
