import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findAccessible, findFileField, namePattern, readText } from "./accessible.js";
import type { Plain, Tab } from "./browser.js";

/** How long a condition may take to become true. */
const DEADLINE_MS = 0.8 * Number(process.env["TEST_LIMIT_MS"] ?? 150_000);
/** How often it is asked. */
const POLL_MS = 40;

/** What an engine has to bring: the rest of {@link Tab} is the same for all. `E` is its handle of an element. */
export interface Page<E> {
  /** Calls a function of the page, given as source, with JSON arguments; awaits and gives its JSON result. */
  call(source: string, args: Plain[]): Promise<unknown>;
  /** Calls such a function and gives the element that it returns, or undefined. */
  element(source: string, args: Plain[]): Promise<E | undefined>;
  click(element: E): Promise<void>;
  /** Types into the element, which is empty. */
  type(element: E, text: string): Promise<void>;
  upload(element: E, path: string): Promise<void>;
  press(keys: string): Promise<void>;
  resize(width: number, height: number): Promise<void>;
  goto(url: string): Promise<void>;
  reload(): Promise<void>;
  close(): Promise<void>;
  url(): Promise<string>;
  screenshot(): Promise<Uint8Array>;
  setColorScheme(scheme: "light" | "dark"): Promise<void>;
  bringToFront(): Promise<void>;
  crash(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  readonly errors: readonly string[];
}

const FIRST = `(role, name) => (${String(findAccessible)})(role, name)[0] ?? null`;
const COUNT = `(role, name) => (${String(findAccessible)})(role, name).length`;
const READ = `(role, name) => {
  const element = (${String(findAccessible)})(role, name)[0];
  return element ? { text: (${String(readText)})(element), disabled: element.matches(":disabled, [aria-disabled=true]") } : null;
}`;
const BODY = "() => document.body?.innerText.slice(0, 2_000)";
const EMPTY = `(role, name) => {
  const element = (${String(findAccessible)})(role, name)[0];
  element.focus();
  if ("value" in element && element.value !== "") {
    // By the element's own setter: React takes no notice of what is set by its own, and puts the old value back.
    const own = [HTMLInputElement, HTMLTextAreaElement].find((type) => element instanceof type) ?? element.constructor;
    Object.getOwnPropertyDescriptor(own.prototype, "value").set.call(element, "");
    element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  }
}`;

/**
 * The tab of an engine's page.
 * @param files folder for the files that are given to the page, kept as long as the browser
 */
export function tabOf<E>(page: Page<E>, files: string): Tab {
  /** Asks until `done` accepts the answer. An error counts as an answer: a page that navigates cannot answer. */
  async function poll<T>(what: string, ask: () => Promise<T>, done: (value: T) => boolean): Promise<T> {
    const end = Date.now() + DEADLINE_MS;
    let last: unknown;
    for (;;) {
      try {
        const value = await ask();
        if (done(value)) return value;
        last = value;
      } catch (error) {
        last = error instanceof Error ? error.message : error;
      }
      if (Date.now() > end) {
        const errors = page.errors.length > 0 ? `\nerrors of the page:\n${page.errors.join("\n")}` : "";
        const body = await page.call(BODY, []).catch((error: unknown) => String(error));
        throw new Error(
          `waited ${DEADLINE_MS} ms for ${what}; the last answer was ${JSON.stringify(last)}${errors}\nthe page:\n${String(body)}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  const called = (role: string, name: string | RegExp): string => `${role} "${String(name)}"`;
  const read = (role: string, name: string | RegExp) =>
    page.call(READ, [role, namePattern(name)]) as Promise<{ text: string; disabled: boolean } | null>;
  const shown = async (role: string, name: string | RegExp) => {
    const found = await poll(
      called(role, name),
      () => read(role, name),
      (it) => it !== null,
    );
    return found as { text: string; disabled: boolean };
  };
  const find = async (role: string, name: string | RegExp) =>
    (await poll(
      called(role, name),
      () => page.element(FIRST, [role, namePattern(name)]),
      (it) => it !== undefined,
    )) as E;
  const enabled = (role: string, name: string | RegExp) =>
    poll(
      `${called(role, name)} to be enabled`,
      () => read(role, name),
      (it) => it?.disabled === false,
    );
  const attr = (name: string): Promise<string | null> =>
    page.call("(name) => document.documentElement.getAttribute(name)", [name]) as Promise<string | null>;

  let travels = 0;
  /** Waits for the other document: by a mark on this one, because the two may have the same address. */
  async function travel(steps: number): Promise<void> {
    const mark = `left-${travels++}`;
    await page.call(
      "(mark, steps) => { document.documentElement.dataset.left = mark; setTimeout(() => history.go(steps)); }",
      [mark, steps],
    );
    await poll(
      `the page ${steps} in the history`,
      () => page.call("() => document.readyState === 'complete' && (document.documentElement.dataset.left ?? '')", []),
      (left) => typeof left === "string" && left !== mark,
    );
  }

  return {
    goto: (url) => page.goto(url),
    reload: () => page.reload(),
    back: () => travel(-1),
    forward: () => travel(1),
    close: () => page.close(),
    url: () => page.url(),
    evaluate: <A extends Plain[], R>(run: (...args: A) => R | Promise<R>, ...args: A) =>
      page.call(String(run), args) as Promise<R>,
    evaluateSource: (source) => page.call(source, []),
    waitFor: async <A extends Plain[], R>(ask: (...args: A) => R | Promise<R>, ...args: A) =>
      (await poll(String(ask), () => page.call(String(ask), args), Boolean)) as NonNullable<R>,
    async click(role, name) {
      await enabled(role, name);
      await page.bringToFront();
      await page.click(await find(role, name));
    },
    async type(role, name, text) {
      await enabled(role, name);
      await page.bringToFront();
      await page.call(EMPTY, [role, namePattern(name)]);
      await page.type(await find(role, name), text);
    },
    async press(keys) {
      await page.bringToFront();
      await page.press(keys);
    },
    resize: (width, height) => page.resize(width, height),
    text: async (role, name) => (await shown(role, name)).text,
    async waitForText(role, name, expected) {
      const fits = (text: string): boolean =>
        typeof expected === "string" ? text.includes(expected) : expected.test(text);
      const found = await poll(
        `${called(role, name)} to say ${String(expected)}`,
        () => read(role, name),
        (it) => it !== null && fits(it.text),
      );
      return found?.text ?? "";
    },
    isDisabled: async (role, name) => (await shown(role, name)).disabled,
    count: (role, name) => page.call(COUNT, [role, namePattern(name)]) as Promise<number>,
    attr,
    async waitForAttr(name, expected) {
      await poll(
        `html's ${name} to be "${expected}"`,
        () => attr(name),
        (it) => it === expected,
      );
    },
    async attachFile({ name, content }) {
      const path = join(await mkdtemp(join(files, "file-")), name);
      await writeFile(path, content);
      const field = await poll(
        "a file field",
        () => page.element(String(findFileField), []),
        (it) => it !== undefined,
      );
      await page.upload(field as E, path);
    },
    screenshot: () => page.screenshot(),
    setColorScheme: (scheme) => page.setColorScheme(scheme),
    bringToFront: () => page.bringToFront(),
    crash: () => page.crash(),
    freeze: () => page.freeze(),
    thaw: () => page.thaw(),
    get errors() {
      return page.errors;
    },
  };
}
