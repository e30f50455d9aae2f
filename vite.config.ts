import { fileURLToPath } from "node:url";
import { playwright } from "@vitest/browser-playwright";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { chromiumFlags, findBrowser } from "./test/setup/browsers.mjs";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The entries of the package, by their name in `dist`. */
const ENTRIES = {
  index: at("src/index.ts"),
  worker: at("src/worker/index.ts"),
  client: at("src/client/index.ts"),
};

/** In the repository the package's own name means its sources, so demo and tests read like a user's code. */
const alias = [
  { find: /^ag-ui-local-runtime$/, replacement: ENTRIES.index },
  { find: /^ag-ui-local-runtime\/worker$/, replacement: ENTRIES.worker },
  { find: /^ag-ui-local-runtime\/client$/, replacement: ENTRIES.client },
];

/** Absent: Playwright looks for its own. */
const chromium = findBrowser("chromium");

/** Suites with several real tabs: Node drives the browser. `test/run.mjs` runs each engine on its own. */
function tabs(engine: "chromium" | "firefox" | "webkit", include: string[]): TestProjectInlineConfiguration {
  return {
    extends: true,
    test: {
      name: engine,
      environment: "node",
      include,
      provide: { engine },
      globalSetup: at("test/tabs/driver/pages.ts"),
      fileParallelism: false,
      retry: 0,
      testTimeout: 60_000,
      hookTimeout: 60_000,
      // A tab's thread of its own ends with its browser.
      pool: "forks",
    },
  };
}

export default defineConfig(({ mode }) =>
  mode === "lib"
    ? {
        publicDir: false,
        build: {
          target: "es2022",
          minify: false,
          lib: { entry: ENTRIES, formats: ["es"] },
          rolldownOptions: { external: [/^@ag-ui\//, /^rxjs/, "idb", "comlink", "fast-json-patch"] },
        },
      }
    : {
        root: at("demo"),
        resolve: { alias },
        worker: { format: "es" },
        server: { host: "127.0.0.1", port: 5173, fs: { allow: [at(".")] } },
        preview: { host: "127.0.0.1" },
        build: { target: "es2022", outDir: at("dist-demo"), emptyOutDir: true },
        // Found at the start: a dependency that turns up later reloads the pages.
        optimizeDeps: { entries: ["**/*.{html,ts}", "../src/**/*.ts"] },
        test: {
          root: at("."),
          projects: [
            { extends: true, test: { name: "unit", environment: "node", include: ["test/unit/**/*.test.ts"] } },
            {
              extends: true,
              test: {
                name: "browser",
                include: ["test/browser/**/*.test.ts"],
                testTimeout: 30_000,
                browser: {
                  enabled: true,
                  headless: true,
                  screenshotFailures: false,
                  api: { host: "127.0.0.1" },
                  provider: playwright({
                    launchOptions: { ...(chromium && { executablePath: chromium }), args: chromiumFlags() },
                  }),
                  instances: [{ browser: "chromium" }],
                },
              },
            },
            tabs("chromium", ["test/tabs/**/*.test.ts"]),
            tabs("firefox", ["test/tabs/**/*.test.ts"]),
            tabs("webkit", ["test/tabs/smoke*.test.ts"]),
          ],
        },
      },
);
