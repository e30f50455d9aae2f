// How large each entry of the package is for a page: bundled, minified, gzipped.
import { gzipSync } from "node:zlib";
import { build } from "vite";

/** The most that an entry may have, in bytes of minified and gzipped code. `own` is without the peers. */
export const BUDGETS = {
  ".": { own: 64_100, whole: 100_600 },
  "./worker": { own: 76_900, whole: 123_300 },
  "./client": { own: 17_500, whole: 61_000 },
  "./runtime": { own: 80_000, whole: 126_100 },
  "./node": { own: 6_400, whole: 6_400 },
  "./service-worker": { own: 6_700, whole: 6_700 },
  // Nearly all of it is the serializer of LangGraph, with what it can bring back.
  "./langgraph": { own: 8_200, whole: 235_000 },
  "./checkpoint": { own: 9_600, whole: 9_600 },
  "./conformance": { own: 23_400, whole: 65_200 },
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
