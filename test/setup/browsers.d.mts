export type BrowserName = "chromium" | "firefox" | "webkit";
export function findBrowser(name: BrowserName): string | undefined;
export function findMiniBrowser(): string | undefined;
export function which(command: string): string | undefined;
export function chromiumFlags(): string[];
