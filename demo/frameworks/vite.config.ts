import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import vue from "@vitejs/plugin-vue";
import { defineConfig } from "vite";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

const in18 = (name: string) => ({ find: new RegExp(`^${name}(?=$|/)`), replacement: at(`node_modules/${name}-18`) });

/** With `--mode react-18` the React page is built with that version. */
export default defineConfig(({ mode }) => ({
  root: at("."),
  plugins: [vue(), svelte()],
  resolve: {
    alias: [
      // In this repository the library is its sources; in an app it is installed.
      { find: /^ag-ui-local-runtime\/(\w+)$/, replacement: at("../../src/$1/index.ts") },
      ...(mode === "react-18" ? ["react-dom", "react"].map(in18) : []),
    ],
    // Either way there is one copy of each.
    dedupe: ["react", "react-dom", "vue", "svelte", "rxjs", "@ag-ui/client", "@ag-ui/core"],
  },
  worker: { format: "es" },
  build: {
    target: "es2022",
    rolldownOptions: { input: ["react", "vue", "svelte"].map((name) => at(`${name}/index.html`)) },
  },
}));
