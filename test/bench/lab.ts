import { fileURLToPath } from "node:url";
import type { Tab } from "../tabs/driver/browser.js";
import { launch } from "../tabs/driver/launch.js";
import { ONE_START } from "../setup/chunks.js";
import { startBuilt } from "../tabs/driver/server.js";
import { meterOf, type Meter } from "./meter.js";
import type { CheckpointsBench } from "./pages/checkpoints.js";
import type { EncryptionBench } from "./pages/encryption.js";
import type { IdleBench } from "./pages/idle.js";
import type { RawBench } from "./pages/raw.js";
import type { RunsBench } from "./pages/runs.js";
import { IDLE_NAME, nameOf, type HostConfig } from "./pages/stamps.js";
import type { TabBench } from "./pages/tab.js";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Calls of what a page has put into its global scope: arguments and answers cross as JSON. */
export type Remote<T> = {
  readonly [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never;
};

function remote<T extends object>(tab: Tab, name: string): Remote<T> {
  return new Proxy({} as Remote<T>, {
    get: (_, method) =>
      method === "then"
        ? undefined
        : async (...args: unknown[]) => {
            try {
              return await tab.evaluate(
                (object: string, called: string, given: unknown[]) =>
                  (globalThis as unknown as Record<string, Record<string, (...all: unknown[]) => unknown>>)[object]![
                    called
                  ]!(...given),
                name,
                String(method),
                args,
              );
            } catch (error) {
              throw new Error([`${name}.${String(method)} failed`, ...tab.errors].join("\n"), { cause: error });
            }
          },
  });
}

/** A browser with the built pages of the bench. */
export interface Lab {
  /** A tab of a host's: `host` is the key of its connection. */
  tab(host: HostConfig): Promise<Remote<TabBench>>;
  /** A tab of the SharedWorker that measures the browser itself. */
  raw(): Promise<Remote<RawBench>>;
  /** A tab of the SharedWorker that has the runner and nothing around it. */
  runs(): Promise<Remote<RunsBench>>;
  /** A tab of the SharedWorker that has checkpoint stores. */
  checkpoints(): Promise<Remote<CheckpointsBench>>;
  encryption(): Promise<Remote<EncryptionBench>>;
  /** A tab of the SharedWorker that does nothing. */
  idle(): Promise<Remote<IdleBench>>;
  /** Ends that worker, and nobody is told. */
  endIdle(): Promise<void>;
  /** Ends a host in the same way. */
  endHost(host: HostConfig): Promise<void>;
  /** Ends a worker that `bareStart` of a tab has started. */
  endBare(name: string): Promise<void>;
  /** A tab as {@link tab}'s in front of the others, and the time that its main thread was busy. */
  meteredTab(host: HostConfig): Promise<{ readonly page: Remote<TabBench>; readonly meter: Meter }>;
  closeTab(page: Remote<TabBench>): Promise<void>;
  closeTabs(): Promise<void>;
  close(): Promise<void>;
}

/** An isolated page has clocks of 5 µs; others of 100. */
const ISOLATED = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

/** The key of the first connection of each tab. */
export const HOST = "host";

let databases = 0;
let metered = 0;

/** A host with a database that nobody has used. */
export const freshHost = (probe = false): HostConfig => ({ dbName: `bench-${++databases}`, host: "a", probe });

/** The same, on a device that nobody has used, in step with the others of the space. */
export const freshDevice = (servers: readonly string[], space: string): HostConfig => ({
  ...freshHost(),
  sync: { servers, space, device: `device-${databases}` },
});

export async function openLab(): Promise<Lab> {
  const server = await startBuilt(
    {
      configFile: false,
      root: at("pages"),
      resolve: { tsconfigPaths: true },
      // As many files as in an app that has the package.
      worker: { format: "es", rolldownOptions: { output: { codeSplitting: ONE_START } } },
      preview: { headers: ISOLATED },
    },
    [
      {
        // So that an error, or a profile, names what it is about.
        minify: false,
        rolldownOptions: {
          input: ["tab", "raw", "runs", "checkpoints", "encryption", "idle"].map((page) => at(`pages/${page}.html`)),
        },
      },
    ],
  );
  const { origin } = server;
  const browser = await launch("chromium");
  const open = new Set<Tab>();
  const tabOf = new WeakMap<object, Tab>();
  const endWorker = async (name: string): Promise<void> => {
    const ended = await browser.endSharedWorkers(name);
    if (ended !== 1) throw new Error(`${ended} workers are called ${name}`);
  };

  // Browser contexts would be devices, too, but Chromium keeps their databases in memory.
  const originOf = ({ sync }: HostConfig): string =>
    sync === undefined ? origin : origin.replace("127.0.0.1", `${sync.device}.localhost`);

  return {
    async tab(host) {
      const tab = await browser.newTab(`${originOf(host)}tab.html`);
      open.add(tab);
      const page = remote<TabBench>(tab, "bench");
      tabOf.set(page, tab);
      await page.connect(HOST, host);
      return page;
    },
    async raw() {
      const tab = await browser.newTab(`${origin}raw.html`);
      open.add(tab);
      const page = remote<RawBench>(tab, "raw");
      await page.join();
      return page;
    },
    async runs() {
      const tab = await browser.newTab(`${origin}runs.html`);
      open.add(tab);
      const page = remote<RunsBench>(tab, "runs");
      await page.ready();
      return page;
    },
    async checkpoints() {
      const tab = await browser.newTab(`${origin}checkpoints.html`);
      open.add(tab);
      const page = remote<CheckpointsBench>(tab, "checkpoints");
      await page.ready();
      return page;
    },
    async encryption() {
      const tab = await browser.newTab(`${origin}encryption.html`);
      open.add(tab);
      const page = remote<EncryptionBench>(tab, "encryption");
      await page.ready();
      return page;
    },
    async idle() {
      const tab = await browser.newTab(`${origin}idle.html`);
      open.add(tab);
      return remote<IdleBench>(tab, "idle");
    },
    async meteredTab(host) {
      const url = `${origin}tab.html#metered-${++metered}`;
      const tab = await browser.newTab(url);
      open.add(tab);
      const page = remote<TabBench>(tab, "bench");
      tabOf.set(page, tab);
      await page.connect(HOST, host);
      await tab.bringToFront();
      return { page, meter: await meterOf(browser.profile, url) };
    },
    endBare: endWorker,
    endIdle: () => endWorker(IDLE_NAME),
    endHost: (host) => endWorker(nameOf(host)),
    async closeTab(page) {
      const tab = tabOf.get(page)!;
      open.delete(tab);
      await tab.close();
    },
    async closeTabs() {
      await Promise.all([...open].map((tab) => tab.close()));
      open.clear();
    },
    async close() {
      await browser.close();
      await server.close();
    },
  };
}
