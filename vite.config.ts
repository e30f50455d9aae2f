import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

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

export default defineConfig(({ mode }) =>
  mode === "lib"
    ? {
        build: {
          target: "es2022",
          minify: false,
          lib: { entry: ENTRIES, formats: ["es"] },
          rollupOptions: { external: [/^@ag-ui\//, /^rxjs/, "idb", "comlink", "fast-json-patch"] },
        },
      }
    : {
        root: at("demo"),
        resolve: { alias },
        worker: { format: "es" },
        server: { host: "127.0.0.1", port: 5173, fs: { allow: [at(".")] } },
        preview: { host: "127.0.0.1" },
        build: { target: "es2022", outDir: at("dist-demo"), emptyOutDir: true },
        test: {
          root: at("."),
          projects: [
            { extends: true, test: { name: "unit", environment: "node", include: ["test/unit/**/*.test.ts"] } },
          ],
        },
      },
);
