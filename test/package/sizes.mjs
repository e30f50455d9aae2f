// How large each entry of the package is for a page: bundled, minified, gzipped.
import { gzipSync } from "node:zlib";
import { build } from "vite";

/**
 * The most that an entry may have, in bytes of minified and gzipped code. `own` is without the peers. `files`: of a whole
 * bundle, what is loaded at the start; each costs a request (test/setup/chunks.ts). An entry alone has what all share; beside
 * another one it costs less: a page with React 0.1 kB more than before, with a host in the worker nothing.
 * Half a kilobyte above what it has: a mend that costs a few bytes passes, a module that slips in does not.
 */
export const BUDGETS = {
  ".": { own: 64_900, whole: 101_600 },
  "./worker": { own: 66_800, whole: 113_800 },
  // A worker whose agents are loaded at their first run: the AG-UI client comes with them.
  serveRuntime: { own: 65_900, whole: 74_600, files: 11 },
  "./client": { own: 26_100, whole: 70_000 },
  // What streams threads comes with the first agent; of the libraries that share code with it, two more files.
  connectRuntime: { own: 19_900, whole: 63_600, files: 7 },
  // The hooks, and the stores below them: about 6 kB more than the connection alone.
  "connectRuntime, react": { own: 25_800, whole: 70_200 },
  "./react": { own: 12_400, whole: 20_200 },
  // What CopilotKit has of its own is not in it.
  "./copilotkit": { own: 13_200, whole: 22_100 },
  "./vue": { own: 12_100, whole: 25_600 },
  "./svelte": { own: 11_900, whole: 23_300 },
  "./runtime": { own: 73_500, whole: 84_800 },
  // What runs agents comes with `startHost`.
  "./node": { own: 14_500, whole: 14_800 },
  "./service-worker": { own: 7_900, whole: 7_900, files: 1 },
  // Nearly all of it is the serializer of LangGraph, with what it can bring back.
  "./langgraph": { own: 16_300, whole: 234_300 },
  // What asks models, and the AI SDK, come with the first run.
  "./ai": { own: 10_300, whole: 53_300 },
  "./encryption": { own: 11_300, whole: 14_400 },
  // The NATS client comes with the first connection.
  "./sync": { own: 12_000, whole: 15_100 },
  "./checkpoint": { own: 15_500, whole: 15_800 },
  "./conformance": { own: 24_500, whole: 65_900 },
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
  return { files: loaded.size, min: Buffer.byteLength(code), gzip: gzipSync(code, { level: 9 }).byteLength };
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
