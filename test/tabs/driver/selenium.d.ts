/** The little of selenium-webdriver (which has no types) that the driver of WebKitGTK uses. */
declare module "selenium-webdriver" {
  export interface WebElement {
    click(): Promise<void>;
    sendKeys(...keys: string[]): Promise<void>;
  }
  export const Capabilities: new (capabilities: Record<string, unknown>) => object;
  export class WebDriver {
    static createSession(executor: unknown, capabilities: object): WebDriver;
    getSession(): Promise<unknown>;
    executeScript(script: string, ...args: unknown[]): Promise<unknown>;
    executeAsyncScript(script: string, ...args: unknown[]): Promise<unknown>;
    get(url: string): Promise<void>;
    getCurrentUrl(): Promise<string>;
    getWindowHandle(): Promise<string>;
    close(): Promise<void>;
    quit(): Promise<void>;
    switchTo(): { window(handle: string): Promise<void>; newWindow(kind: "tab" | "window"): Promise<void> };
    navigate(): { refresh(): Promise<void> };
    manage(): { setTimeouts(timeouts: { script?: number; pageLoad?: number }): Promise<void> };
  }
}

declare module "selenium-webdriver/http/index.js" {
  export const HttpClient: new (url: string) => object;
  export const Executor: new (client: object) => object;
}
