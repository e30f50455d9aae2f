/** The engines that the tests drive. */
export type Engine = "chromium" | "firefox" | "webkit";

/** What can cross into a page and back. */
export type Plain = unknown;

/**
 * A browser with a profile of its own.
 *
 * - `close` and `kill` must end every process of it, whatever state it is in.
 * - Tabs must share what tabs of one profile share: workers, databases, locks.
 */
export interface Browser {
  readonly engine: Engine;
  /** The process whose end is the browser's end. */
  readonly pid: number;
  /** @param beforeLoad runs in each document of the tab before any script of the page (not in WebKit) */
  newTab(url?: string, options?: { beforeLoad?: () => void }): Promise<Tab>;
  /** Ends the browser and deletes its profile. */
  close(): Promise<void>;
  /** SIGKILL for the whole process tree. The profile stays, for `launch(engine, { profile })`. */
  kill(): Promise<void>;
}

/**
 * One page. Functions given to it run in the page, so they must not use anything from around them but their arguments,
 * which cross as JSON. What finds elements finds them as a person with a screen reader would: by role and name.
 */
export interface Tab {
  goto(url: string): Promise<void>;
  reload(): Promise<void>;
  close(): Promise<void>;
  url(): Promise<string>;
  evaluate<A extends Plain[], R>(run: (...args: A) => R | Promise<R>, ...args: A): Promise<R>;
  /** The same with the source text of a function without arguments. */
  evaluateSource(source: string): Promise<unknown>;
  /** Asks until the answer is truthy and gives it. Fails at the deadline and says what the last answer was. */
  waitFor<A extends Plain[], R>(ask: (...args: A) => R | Promise<R>, ...args: A): Promise<NonNullable<R>>;
  click(role: string, name: string | RegExp): Promise<void>;
  /** Replaces what the text field holds. */
  type(role: string, name: string | RegExp, text: string): Promise<void>;
  /** The rendered text of the element, once it is there. */
  text(role: string, name: string | RegExp): Promise<string>;
  /** Waits until the element's text contains, or matches, this; gives the text. */
  waitForText(role: string, name: string | RegExp, expected: string | RegExp): Promise<string>;
  isDisabled(role: string, name: string | RegExp): Promise<boolean>;
  /** How many elements of this role (and name) are shown. */
  count(role: string, name?: string | RegExp): Promise<number>;
  /** An attribute of the html element. */
  attr(name: string): Promise<string | null>;
  waitForAttr(name: string, expected: string): Promise<void>;
  /** Gives a file to the page's file field. */
  attachFile(file: { name: string; content: string | Uint8Array }): Promise<void>;
  /** PNG. Not in WebKit. */
  screenshot(): Promise<Uint8Array>;
  /** Light or dark, as the system would say it. Chromium only. */
  setColorScheme(scheme: "light" | "dark"): Promise<void>;
  bringToFront(): Promise<void>;
  /** Errors that the page threw or logged, in order. */
  readonly errors: readonly string[];
}
