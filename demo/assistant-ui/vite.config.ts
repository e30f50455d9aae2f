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
    // Either way there is one copy of each; the recipe, which lies outside of this folder, finds them here.
    dedupe: [
      "react",
      "react-dom",
      "rxjs",
      "@ag-ui/client",
      "@ag-ui/core",
      "@assistant-ui/react",
      "@assistant-ui/react-ag-ui",
      "assistant-stream",
    ],
  },
  worker: { format: "es" },
  build: { target: "es2022" },
});
