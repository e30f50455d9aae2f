import { fileURLToPath } from "node:url";
import { playwright } from "@vitest/browser-playwright";
import type { Plugin } from "vite";
import { VitePWA } from "vite-plugin-pwa";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { guidePages } from "./demo/guide-pages/plugin.js";
import { respond } from "./demo/servers/model.mjs";
import { chromiumFlags, findBrowser } from "./test/setup/browsers.mjs";
import { ONE_START, packageChunks } from "./test/setup/chunks.js";
import { LEFT_OUT } from "./test/setup/gate.mjs";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The entries of the package, by their name in `dist`. */
const ENTRIES = {
  index: at("src/index.ts"),
  worker: at("src/worker/index.ts"),
  // A file of its own, so that a worker that loads its agents when they run does not load the AG-UI client before.
  "define-agent": at("src/worker/define-agent.ts"),
  client: at("src/client/index.ts"),
  runtime: at("src/runtime/index.ts"),
  node: at("src/runtime/node.ts"),
  "service-worker": at("src/service-worker/index.ts"),
  checkpoint: at("src/checkpoint/index.ts"),
  langgraph: at("src/langgraph/index.ts"),
  encryption: at("src/encryption/index.ts"),
  sync: at("src/sync/index.ts"),
  ai: at("src/ai/index.ts"),
  react: at("src/react/index.ts"),
  copilotkit: at("src/copilotkit/index.ts"),
  vue: at("src/vue/index.ts"),
  svelte: at("src/svelte/index.ts"),
  conformance: at("src/conformance/index.ts"),
};

/** In the repository the package's own name means its sources, so demo and tests read like a user's code. */
const alias = [
  { find: /^ag-ui-local-runtime$/, replacement: ENTRIES.index },
  { find: /^ag-ui-local-runtime\/worker$/, replacement: ENTRIES.worker },
  { find: /^ag-ui-local-runtime\/client$/, replacement: ENTRIES.client },
  { find: /^ag-ui-local-runtime\/runtime$/, replacement: ENTRIES.runtime },
  { find: /^ag-ui-local-runtime\/node$/, replacement: ENTRIES.node },
  { find: /^ag-ui-local-runtime\/service-worker$/, replacement: ENTRIES["service-worker"] },
  { find: /^ag-ui-local-runtime\/checkpoint$/, replacement: ENTRIES.checkpoint },
  { find: /^ag-ui-local-runtime\/langgraph$/, replacement: ENTRIES.langgraph },
  { find: /^ag-ui-local-runtime\/encryption$/, replacement: ENTRIES.encryption },
  { find: /^ag-ui-local-runtime\/sync$/, replacement: ENTRIES.sync },
  { find: /^ag-ui-local-runtime\/ai$/, replacement: ENTRIES.ai },
  { find: /^ag-ui-local-runtime\/react$/, replacement: ENTRIES.react },
  { find: /^ag-ui-local-runtime\/copilotkit$/, replacement: ENTRIES.copilotkit },
  { find: /^ag-ui-local-runtime\/vue$/, replacement: ENTRIES.vue },
  { find: /^ag-ui-local-runtime\/svelte$/, replacement: ENTRIES.svelte },
  { find: /^ag-ui-local-runtime\/conformance$/, replacement: ENTRIES.conformance },
];

/** The demo's policy lets nothing but its own origin in; where Vite serves, also Vite's websocket and its pinging worker. */
const devServerPolicy: Plugin = {
  name: "demo-dev-server-policy",
  apply: "serve",
  transformIndexHtml: (html) =>
    html
      .replace("connect-src 'self'", "connect-src 'self' ws://127.0.0.1:* ws://localhost:*")
      .replace("worker-src 'self'", "worker-src 'self' blob:"),
};

/** The scripted model, from the page's own origin: the policy needs no exception for it. */
const scriptedModel: Plugin = {
  name: "demo-scripted-model",
  configureServer: ({ middlewares }) => void middlewares.use("/model/v1", respond),
  configurePreviewServer: ({ middlewares }) => void middlewares.use("/model/v1", respond),
};

/** The built demo is installable and opens without a network: everything it is made of is cached at the first visit. */
const offline = VitePWA({
  // A new build is used once all tabs of the old one are closed: no answer is interrupted by it.
  registerType: "prompt",
  injectRegister: false,
  workbox: { globPatterns: ["**/*.{js,css,html,svg,png,md,csv,txt}"], maximumFileSizeToCacheInBytes: 4_000_000 },
  manifest: {
    name: "Reader: an agent in your browser",
    short_name: "Reader",
    description: "Reads your documents right here: no server, no network.",
    start_url: "./",
    display: "standalone",
    background_color: "#f7f5f0",
    theme_color: "#0f6b5c",
    icons: [
      { src: "icon-192.png", sizes: "192x192", type: "image/png" },
      { src: "icon-512.png", sizes: "512x512", type: "image/png", purpose: "any maskable" },
      { src: "favicon.svg", sizes: "any", type: "image/svg+xml" },
    ],
  },
});

/** Random cases: the same ones again, or more of them. */
const provide = {
  propertySeed: Number(process.env["PROPERTY_SEED"] ?? Math.trunc(Math.random() * 2 ** 31)),
  propertyFactor: Number(process.env["PROPERTY_FACTOR"] ?? 1),
};

/** Absent: Playwright looks for its own. */
const chromium = findBrowser("chromium");

/**
 * Limits of a test and a hook, in ms. They end what hangs: no test may come near them on a busy machine. TEST_LIMIT_MS is
 * for who breaks things on purpose and does not want to wait that long.
 */
const generous = (given: number) => {
  const limit = Number(process.env["TEST_LIMIT_MS"] ?? given);
  return { testTimeout: limit, hookTimeout: limit };
};

/** What counts modules that are loaded late, replaces what Node has, or is about a whole process: each file in one of its own. */
const ALONE = ["test/unit/{client,runtime,service-worker,worker}/**/*.test.ts", "test/unit/**/*.alone.test.ts"];

const leftOut = process.env["TEST_GATE"] === "true" ? LEFT_OUT : [];

/** Logic, in Node: `npm test -- unit` runs both. Starting a process and loading the modules costs more than most files. */
function unit(name: string, own: TestProjectInlineConfiguration["test"]): TestProjectInlineConfiguration {
  return {
    extends: true,
    test: {
      name,
      environment: "node",
      // The default leaves one of two cores unused.
      maxWorkers: 2,
      globalSetup: at("test/unit/seed.ts"),
      ...generous(300_000 * Math.max(1, provide.propertyFactor)),
      ...own,
    },
  };
}

/** Suites with several real tabs: Node drives the browser. `test/run.mjs` runs each engine on its own. */
function tabs(
  engine: "chromium" | "firefox" | "webkit",
  include: string[],
  { name = engine as string, pages = ["test/tabs/driver/pages.ts"] } = {},
): TestProjectInlineConfiguration {
  return {
    extends: true,
    test: {
      name,
      environment: "node",
      include,
      provide: { engine },
      globalSetup: pages.map(at),
      maxWorkers: 2,
      retry: 0,
      ...generous(600_000),
      pool: "forks",
    },
  };
}

/** What WebKitGTK can run whole: a driver cannot kill it and find its database again, nor do something before a page loads. */
const WEBKIT_FILES = ["smoke*", "sync", "locked", "users", "takeover", "hosts", "servers", "ai", "recipes"];

/** Packages of front ends, each with a `test/setup.ts` of its own that installs, builds and serves it. */
const FRONT_ENDS = ["demo/frameworks", "demo/assistant-ui", "demo/copilotkit"];

const frontEnds = (engine: "chromium" | "firefox"): TestProjectInlineConfiguration =>
  tabs(
    engine,
    FRONT_ENDS.map((folder) => `${folder}/test/*.test.ts`),
    { name: `frontends-${engine}`, pages: FRONT_ENDS.map((folder) => `${folder}/test/setup.ts`) },
  );

export default defineConfig(({ mode }) =>
  mode === "lib"
    ? {
        publicDir: false,
        build: {
          target: "es2022",
          minify: false,
          lib: { entry: ENTRIES, formats: ["es"] },
          rolldownOptions: {
            output: { codeSplitting: packageChunks(ENTRIES) },
            external: [
              /^@ag-ui\//,
              /^@langchain\//,
              /^@nats-io\//,
              /^rxjs/,
              "ai",
              "react",
              "vue",
              "svelte",
              "idb",
              "comlink",
              "@remix-run/node-fetch-server",
              /^node:/,
            ],
          },
        },
      }
    : {
        root: at("demo"),
        plugins: [devServerPolicy, scriptedModel, offline, guidePages(at("demo"))],
        resolve: { alias },
        worker: { format: "es", rolldownOptions: { output: { codeSplitting: ONE_START } } },
        server: { host: "127.0.0.1", port: 5173, fs: { allow: [at(".")] } },
        preview: { host: "127.0.0.1" },
        build: { target: "es2022", outDir: at("dist-demo"), emptyOutDir: true },
        // Found at the start: a dependency that turns up later reloads the pages. What Node runs is not theirs.
        optimizeDeps: {
          entries: [
            at("demo/**/*.{html,ts}"),
            at("src/**/*.ts"),
            `!${at("demo/{assistant-ui,copilotkit,frameworks,recipes,servers,test}/**")}`,
          ],
        },
        test: {
          root: at("."),
          provide,
          // A list: those of a project come besides.
          setupFiles: [at("test/setup/patience.ts")],
          // As long as vi.waitFor waits there: the default is a second.
          expect: { poll: { timeout: 60_000 } },
          // What agents that err on purpose make the client and the default logger say.
          onConsoleLog: (log) => !/^(\[ag-ui\]\[enforce\]|Failed to apply state patch|Run ".*" of thread )/.test(log),
          projects: [
            unit("unit", {
              isolate: false,
              setupFiles: at("test/setup/own-databases.ts"),
              include: ["test/unit/**/*.test.ts", "test/conformance/**/*.test.ts", "demo/test/unit/**/*.test.ts"],
              exclude: [...ALONE, ...leftOut],
            }),
            unit("unit-alone", { include: ALONE, exclude: [...leftOut] }),
            {
              extends: true,
              // What the packages behind a2ui and mcpApps use of Node.
              resolve: { alias: { crypto: at("demo/shims/node.ts"), stream: at("demo/shims/node.ts") } },
              test: {
                name: "browser",
                include: ["test/browser/**/*.test.ts"],
                globalSetup: [at("test/unit/seed.ts"), at("test/browser/servers.ts")],
                ...generous(300_000 * Math.max(1, provide.propertyFactor)),
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
            {
              extends: true,
              test: {
                name: "copilotkit",
                environment: "node",
                globalSetup: at("test/interop/setup.mjs"),
                testTimeout: 60_000,
                include: ["test/interop/*.test.ts"],
              },
            },
            // Real servers, which are killed: one file after the other.
            unit("sync", {
              include: ["test/sync/**/*.test.ts"],
              exclude: [...leftOut],
              fileParallelism: false,
              maxWorkers: 1,
              pool: "forks",
            }),
            frontEnds("chromium"),
            frontEnds("firefox"),
            tabs("chromium", ["test/tabs/**/*.test.ts", "demo/test/tabs/*.test.ts"]),
            // What is about the dev server, not about the browser, is tested in one.
            tabs("firefox", ["test/tabs/**/!(dev-*).test.ts", "demo/test/tabs/*.test.ts"]),
            tabs(
              "webkit",
              WEBKIT_FILES.map((name) => `test/tabs/${name}.test.ts`),
            ),
          ],
        },
      },
);
