import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, preview, type InlineConfig } from "vite";
import type { Tab } from "../tabs/driver/browser.js";
import { launch } from "../tabs/driver/launch.js";
import type { RawBench } from "./pages/raw.js";
import type { RunsBench } from "./pages/runs.js";
import type { HostConfig } from "./pages/stamps.js";
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

export async function openLab(): Promise<Lab> {
  const outDir = await mkdtemp(join(tmpdir(), "agui-bench-"));
  const shared: InlineConfig = {
    configFile: false,
    root: at("pages"),
    logLevel: "error",
    resolve: {
      alias: [
        { find: /^ag-ui-local-runtime$/, replacement: at("../../src/index.ts") },
        { find: /^ag-ui-local-runtime\/worker$/, replacement: at("../../src/worker/index.ts") },
        { find: /^ag-ui-local-runtime\/client$/, replacement: at("../../src/client/index.ts") },
      ],
    },
    worker: { format: "es" },
  };
  await build({
    ...shared,
    build: {
      outDir,
      emptyOutDir: true,
      target: "es2022",
      // So that an error, or a profile, names what it is about.
      minify: false,
      rolldownOptions: { input: ["tab", "raw", "runs"].map((page) => at(`pages/${page}.html`)) },
    },
  });
  const server = await preview({
    ...shared,
    build: { outDir },
    preview: { host: "127.0.0.1", port: 0, headers: ISOLATED },
  });
  const address = server.httpServer.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const origin = `http://127.0.0.1:${address.port}/`;
  const browser = await launch("chromium");
  const open = new Set<Tab>();

  return {
    async tab(host) {
      const tab = await browser.newTab(`${origin}tab.html`);
      open.add(tab);
      const page = remote<TabBench>(tab, "bench");
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
    async closeTabs() {
      await Promise.all([...open].map((tab) => tab.close()));
      open.clear();
    },
    async close() {
      await browser.close();
      await server.close();
      await rm(outDir, { recursive: true, force: true });
    },
  };
}
