const KEY = "reader:single-keys";

/** Turned off where the browser stores nothing: it holds for this page. */
let areOffHere = false;

/**
 * Whether keys without Ctrl or ⌘ are shortcuts. Whoever speaks to the computer, or hits keys by accident, turns them off
 * (https://www.w3.org/WAI/WCAG22/Understanding/character-key-shortcuts). Read at each key: it holds in all tabs.
 */
export const singleKeys = {
  get areOn(): boolean {
    try {
      return !areOffHere && localStorage.getItem(KEY) !== "off";
    } catch {
      return !areOffHere;
    }
  },
  set areOn(areOn: boolean) {
    areOffHere = false;
    try {
      if (areOn) localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, "off");
    } catch {
      areOffHere = !areOn;
    }
  },
};
