/** The key of commands as the user's keyboard names it, and as `aria-keyshortcuts` does. */
export const [COMMAND, ARIA_COMMAND] = /^(Mac|iP)/.test(navigator.platform) ? ["⌘", "Meta"] : ["Ctrl", "Control"];
