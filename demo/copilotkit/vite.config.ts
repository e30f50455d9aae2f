import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { devServerPolicy } from "../dev-server-policy.js";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: at("."),
  plugins: [devServerPolicy],
  resolve: {
    // In this repository the library is its sources; in an app it is installed.
    alias: [{ find: /^ag-ui-local-runtime\/(\w+)$/, replacement: at("../../src/$1/index.ts") }],
    // The library's and the page's are one. CopilotKit's copy of `@ag-ui/client` stays its own.
    dedupe: ["react", "react-dom"],
  },
  worker: { format: "es" },
  // Found at the start: a dependency that turns up later reloads the page.
  optimizeDeps: {
    entries: [
      "index.html",
      "agents.worker.ts",
      at("../../src/{client,react,copilotkit,worker,runtime,runner}/**/*.ts"),
    ],
  },
  server: { host: "127.0.0.1", fs: { allow: [at("../..")] } },
  build: { target: "es2022" },
});
