// How large each entry of the package is for a page: bundled, minified, gzipped.
import { gzipSync } from "node:zlib";
import { build } from "vite";

/**
 * The most that an entry may have, in bytes of minified and gzipped code. `own` is without the peers.
 * Half a kilobyte above what it has: a mend that costs a few bytes passes, a module that slips in does not.
 */
export const BUDGETS = {
  ".": { own: 67_700, whole: 104_600 },
  "./worker": { own: 70_700, whole: 118_300 },
  // A worker whose agents are loaded at their first run: the AG-UI client comes with them.
  serveRuntime: { own: 69_700, whole: 78_900 },
  "./client": { own: 27_700, whole: 71_500 },
  connectRuntime: { own: 21_300, whole: 65_300 },
  // The hooks, and the stores below them: about 6 kB more than the connection alone.
  "connectRuntime, react": { own: 27_500, whole: 71_900 },
  "./react": { own: 11_200, whole: 18_500 },
  // What CopilotKit has of its own is not in it.
  "./copilotkit": { own: 11_400, whole: 21_000 },
  "./vue": { own: 10_900, whole: 23_900 },
  "./svelte": { own: 10_700, whole: 21_600 },
  "./runtime": { own: 74_600, whole: 86_100 },
  // What runs agents comes with `startHost`.
  "./node": { own: 9_200, whole: 9_200 },
  "./service-worker": { own: 7_600, whole: 7_600 },
  // Nearly all of it is the serializer of LangGraph, with what it can bring back.
  "./langgraph": { own: 11_800, whole: 229_800 },
  // What asks models, and the AI SDK, come with the first run.
  "./ai": { own: 8_300, whole: 51_300 },
  "./encryption": { own: 10_900, whole: 14_000 },
  // The NATS client comes with the first connection.
  "./sync": { own: 11_800, whole: 14_900 },
  "./checkpoint": { own: 12_000, whole: 12_000 },
  "./conformance": { own: 23_900, whole: 65_500 },
};

/** What Vite puts around `import()` is no code of the package. */
const plainImports = {
  name: "plain-imports",
  enforce: "pre",
  load: (id) => (id.endsWith("vite/preload-helper.js") ? "export const __vitePreload = (load) => load();" : undefined),
};

/** Bundles an entry and what it imports; `external` stays out. */
async function bundle(entry, external) {
  const result = await build({
    configFile: false,
    logLevel: "silent",
    publicDir: false,
    plugins: [plainImports],
    build: {
      write: false,
      target: "es2022",
      modulePreload: false,
      rolldownOptions: { input: entry, external, preserveEntrySignatures: "strict" },
    },
  });
  // What is loaded at the start; what is imported when it is needed is not.
  const chunks = new Map(result.output.map((output) => [output.fileName, output]));
  const loaded = new Set();
  const load = (fileName) => {
    if (loaded.has(fileName) || !chunks.has(fileName)) return;
    loaded.add(fileName);
    chunks.get(fileName).imports.forEach(load);
  };
  result.output.filter(({ isEntry }) => isEntry).forEach(({ fileName }) => load(fileName));
  const code = [...loaded].map((fileName) => chunks.get(fileName).code).join("\n");
  return { min: Buffer.byteLength(code), gzip: gzipSync(code, { level: 9 }).byteLength };
}

/** @param entries paths of the built entries, by their name in `exports` */
export async function measure(entries, peers) {
  const external = peers.map((name) => new RegExp(`^${name}($|/)`));
  const sizes = [];
  for (const [name, path] of Object.entries(entries)) {
    sizes.push({ name, own: await bundle(path, external), whole: await bundle(path, []) });
  }
  return sizes;
}
