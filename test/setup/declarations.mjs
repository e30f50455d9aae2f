// `npm run build`, after the code: writes one declaration file for each entry into dist, with what it reaches and no more.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Where `tsc -p src/tsconfig.json` writes a declaration file for each source. */
const WRITTEN = join(ROOT, "node_modules/.cache/ag-ui-local-runtime/types");
const ENTRIES = {
  index: "index",
  worker: "worker/index",
  client: "client/index",
  runtime: "runtime/index",
  node: "runtime/node",
  "service-worker": "service-worker/index",
  checkpoint: "checkpoint/index",
  encryption: "encryption/index",
  sync: "sync/index",
  langgraph: "langgraph/index",
  ai: "ai/index",
  react: "react/index",
  copilotkit: "copilotkit/index",
  vue: "vue/index",
  svelte: "svelte/index",
  conformance: "conformance/index",
};

const input = Object.entries(ENTRIES).map(([name, path]) => [name, join(WRITTEN, `${path}.d.ts`)]);
const bundle = await rolldown({
  input: Object.fromEntries(input),
  // All but the project's own files.
  external: /^[^./]/,
  plugins: [dts({ dtsInput: true })],
  // No comments that name the sources.
  experimental: { attachDebugInfo: "none" },
});
await bundle.write({ dir: join(ROOT, "dist"), chunkFileNames: "types/[name].d.ts" });
rmSync(WRITTEN, { recursive: true });
