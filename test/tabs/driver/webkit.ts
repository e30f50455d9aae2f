import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { Capabilities, WebDriver, type WebElement } from "selenium-webdriver";
import { Executor, HttpClient } from "selenium-webdriver/http/index.js";
import { findMiniBrowser } from "../../setup/browsers.mjs";
import { killTree } from "../../setup/processes.mjs";
import { cannot, type Started } from "./puppeteer.js";
import { type Page, tabOf } from "./tab.js";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Waits until the driver answers; ends with an error when its process does. */
async function listening(url: string, ended: () => boolean): Promise<void> {
  const end = Date.now() + 120_000;
  for (;;) {
    if (ended()) throw new Error("WebKitWebDriver ended at its start");
    try {
      await fetch(`${url}/status`, { signal: AbortSignal.timeout(2_000) });
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Runs a function of the page to its end; an error crosses as text. */
const CALL = `
  const done = arguments[arguments.length - 1];
  Promise.resolve().then(() => (SOURCE)(...JSON.parse(arguments[0]))).then(
    (value) => done({ value: value === undefined ? "null" : JSON.stringify(value) }),
    (error) => done({ error: String(error && error.message || error) }),
  );`;

/** WebKitGTK's MiniBrowser by WebDriver, under a virtual display of its own. */
export async function startWebKit(driverPath: string, profile: string): Promise<Started> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const home = join(profile, "data");
  const files = join(profile, "files");
  await Promise.all([mkdir(home, { recursive: true }), mkdir(files, { recursive: true })]);
  const child = spawn("xvfb-run", ["-a", "dbus-run-session", "--", driverPath, `--port=${port}`, "--host=127.0.0.1"], {
    stdio: "ignore",
    env: { ...process.env, HOME: home, XDG_DATA_HOME: home, XDG_CACHE_HOME: home, XDG_CONFIG_HOME: home },
  });
  const pid = child.pid;
  if (pid === undefined) throw new Error("xvfb-run could not be started");
  try {
    let ended = false;
    child.once("exit", () => (ended = true));
    await listening(url, () => ended);
    const driver = WebDriver.createSession(
      new Executor(new HttpClient(url)),
      new Capabilities({
        browserName: "MiniBrowser",
        "webkitgtk:browserOptions": { binary: findMiniBrowser(), args: ["--automation"] },
      }),
    );
    await driver.getSession();
    await driver.manage().setTimeouts({ script: 300_000, pageLoad: 120_000 });
    return {
      pid,
      newTab: tabsOf(driver, files),
      endSharedWorkers: cannot("webkit", "end a SharedWorker"),
      setQuota: cannot("webkit", "set a quota"),
      heapOf: cannot("webkit", "measure a SharedWorker"),
      takeOffline: cannot("webkit", "take the network from a SharedWorker"),
      clearSiteData: cannot("webkit", "clear the data of a site"),
      quit: () => driver.quit(),
    };
  } catch (error) {
    killTree(pid);
    throw error;
  }
}

function tabsOf(driver: WebDriver, files: string): Started["newTab"] {
  // A session speaks to one window at a time: calls for different tabs wait for one another.
  let last: Promise<unknown> = Promise.resolve();
  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };
  const first = driver.getWindowHandle();
  return async ({ beforeLoad }) => {
    if (beforeLoad) throw new Error("WebKitGTK has no script before load");
    const handle = await alone(async () => {
      await driver.switchTo().newWindow("tab");
      return driver.getWindowHandle();
    });
    const here = <T>(work: () => Promise<T>): Promise<T> =>
      alone(async () => {
        await driver.switchTo().window(handle);
        return work();
      });
    const page: Page<WebElement> = {
      errors: [],
      async call(source, args) {
        const script = CALL.replace("SOURCE", () => source);
        const answer = (await here(() => driver.executeAsyncScript(script, JSON.stringify(args)))) as {
          value?: string;
          error?: string;
        };
        if (answer.error !== undefined) throw new Error(answer.error);
        return JSON.parse(answer.value ?? "null");
      },
      async element(source, args) {
        const script = `return (${source})(...JSON.parse(arguments[0]))`;
        const found = await here(() => driver.executeScript(script, JSON.stringify(args)));
        return (found as WebElement | null) ?? undefined;
      },
      click: (element) => here(() => element.click()),
      type: (element, text) => here(() => element.sendKeys(text)),
      upload: (element, path) => here(() => element.sendKeys(path)),
      goto: (to) => here(() => driver.get(to)),
      reload: () => here(() => driver.navigate().refresh()),
      close: () =>
        here(async () => {
          await driver.close();
          // A session whose window is closed opens no new one.
          await driver.switchTo().window(await first);
        }),
      url: () => here(() => driver.getCurrentUrl()),
      // Its driver never answers for a tab that is not the shown one.
      press: cannot("webkit", "press keys without an element"),
      resize: cannot("webkit", "resize a page"),
      screenshot: () => Promise.reject(new Error("WebKitGTK takes no screenshots of tabs")),
      setColorScheme: () => Promise.reject(new Error("WebKitGTK's color scheme cannot be set")),
      bringToFront: () => here(async () => {}),
      crash: cannot("webkit", "crash a tab"),
      freeze: cannot("webkit", "freeze"),
      thaw: cannot("webkit", "thaw"),
    };
    return tabOf(page, files);
  };
}
