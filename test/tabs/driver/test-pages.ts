import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ServerResponse } from "node:http";
import type { BuildOptions, Plugin } from "vite";
import { CLASSIC_SERVICE_WORKER } from "../pages/fetch-base.js";
import { BLOCKED_PATH, GO_ON_PATH } from "../pages/lab-orders.js";
import { ROOT, type Server, startBuilt } from "./server.js";

const FOLDER = join(ROOT, "test/tabs/pages");

/** The worker of scripted.html once more, as another build of the same sources. */
export const OTHER_BUILD = "/other-build.js";

/** Files of test/tabs/pages that tests ask for by their name; what these import is called as it comes. */
const entries = readdirSync(FOLDER).filter((name) => /\.html$|\.worker\.ts$|-sw\.ts$/.test(name));

const PAGES: BuildOptions = {
  // So that an error names what it is about.
  minify: false,
  // What does that knows a page only, and these are also workers.
  modulePreload: false,
  rolldownOptions: {
    input: entries.map((name) => join(FOLDER, name)),
    // Some take something from the browser before anything else is loaded.
    output: { entryFileNames: "[name].js", strictExecutionOrder: true },
    // Files that are imported for what they do: package.json says of the library's that there are none.
    treeshake: false,
  },
};
const SECOND: BuildOptions = {
  minify: true,
  modulePreload: false,
  rolldownOptions: {
    input: join(FOLDER, "scripted.worker.ts"),
    output: { entryFileNames: OTHER_BUILD.slice(1) },
  },
};

const CLASSIC: BuildOptions = {
  modulePreload: false,
  rolldownOptions: {
    input: join(FOLDER, "fetch-sw.ts"),
    output: { entryFileNames: CLASSIC_SERVICE_WORKER.slice(1), format: "iife" },
  },
};

/** Answers a worker that blocks itself when a test lets it go on, whichever of the two comes first. */
function blocking(): Plugin {
  const waiting = new Map<string, ServerResponse | "let go">();
  return {
    name: "blocking",
    configurePreviewServer({ middlewares }) {
      middlewares.use(BLOCKED_PATH, ({ url = "" }, response) => {
        if (waiting.get(url) !== "let go") return void waiting.set(url, response);
        waiting.delete(url);
        response.end();
      });
      middlewares.use(GO_ON_PATH, ({ url = "" }, response) => {
        const blocked = waiting.get(url);
        if (blocked === undefined || blocked === "let go") waiting.set(url, "let go");
        else blocked.end();
        response.end();
      });
    },
  };
}

/** test/tabs/pages, built: a page that is made of a hundred modules takes three times as long to load from sources. */
export const startTestPages = (): Promise<Server> =>
  startBuilt(
    {
      configFile: false,
      root: FOLDER,
      publicDir: join(ROOT, "demo/public"),
      plugins: [blocking()],
      resolve: {
        tsconfigPaths: true,
        alias: [
          // Suites that vitest runs elsewhere.
          { find: /^vitest$/, replacement: join(FOLDER, "in-page-tests.ts") },
          // What the packages behind a2ui and mcpApps use of Node.
          { find: /^(crypto|stream)$/, replacement: join(ROOT, "demo/shims/node.ts") },
        ],
      },
      worker: { format: "es" },
    },
    [PAGES, SECOND, CLASSIC],
  );

/** Where the server has the script of a worker of that folder. */
export const workerScript = (name: string): string => `/${name}.worker.js`;
