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
  /**
   * Ends SharedWorkers the way a fault does: nobody is told, their ports stay silent. Chromium only; `LabTabs.endHost`
   * ends one in every engine.
   *
   * @param nameHas only those whose name has this in it
   * @returns how many were ended; they are gone when it resolves
   */
  endSharedWorkers(nameHas?: string): Promise<number>;
  /** What the heap of the SharedWorker whose name has this in it holds after a garbage collection, in bytes. Chromium only. */
  heapOf(workerHas: string): Promise<number>;
  /** Takes the network from the SharedWorker whose name has this in it; what it resolves with gives it back. Chromium only. */
  takeOffline(workerHas: string): Promise<() => Promise<void>>;
  /**
   * Lets an origin store only so much. Chromium only. In force at once where the origin has not written for 30 s, else
   * when that time is over: the browser remembers for so long how much room there was.
   *
   * @param origin as `location.origin` has it
   * @param bytes undefined: as much as before
   */
  setQuota(origin: string, bytes: number | undefined): Promise<void>;
  /** What "Clear site data" of the developer tools does to an origin's storage. Chromium only. */
  clearSiteData(origin: string): Promise<void>;
  /** Ends the browser and deletes its profile. */
  close(): Promise<void>;
  /**
   * SIGKILL for the whole process tree. The profile stays, for `launch(engine, { profile })`; WebKitGTK's driver keeps
   * databases in memory only, so nothing is in it there.
   */
  kill(): Promise<void>;
}

/**
 * One page. Functions given to it run in the page, so they must not use anything from around them but their arguments,
 * which cross as JSON. What finds elements finds them as a person with a screen reader would: by role and name.
 */
export interface Tab {
  goto(url: string): Promise<void>;
  reload(): Promise<void>;
  /** One step back in the tab's history: out of the back/forward cache where the browser has put the page there. */
  back(): Promise<void>;
  /** One step forward, likewise. */
  forward(): Promise<void>;
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
  /** Presses a key, or several at once ("Control+k"), for whatever has the focus. Not in WebKit. */
  press(keys: string): Promise<void>;
  /** How wide and high the page is shown, in px. Not in WebKit. */
  resize(width: number, height: number): Promise<void>;
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
  /**
   * Ends the process that shows the page, and with it the SharedWorkers that this tab was the first to start: they live
   * in the same process, and other tabs' workers in theirs. After it `goto`, `reload` and `close` work, and everything
   * else fails. Chromium only.
   */
  crash(): Promise<void>;
  /**
   * Suspends the page as the browser does with one that was out of sight for long: its timers and messages wait. The
   * page must not be the shown one (`bringToFront` of another tab). What a test asks of it is still answered. Chromium
   * only.
   */
  freeze(): Promise<void>;
  /** Ends what `freeze` began. Chromium only. */
  thaw(): Promise<void>;
  /** Errors that the page threw or logged, in order. */
  readonly errors: readonly string[];
}
