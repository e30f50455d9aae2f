// How large each entry of the package is for a page: bundled, minified, gzipped.
import { gzipSync } from "node:zlib";
import { build } from "vite";

/** The most that an entry may have, in bytes of minified and gzipped code. `own` is without the peers. */
export const BUDGETS = {
  ".": { own: 64_600, whole: 101_200 },
  "./worker": { own: 77_500, whole: 123_800 },
  "./client": { own: 25_800, whole: 68_900 },
  "./runtime": { own: 80_000, whole: 126_600 },
  "./node": { own: 6_200, whole: 6_200 },
  "./service-worker": { own: 6_700, whole: 6_700 },
  // Nearly all of it is the serializer of LangGraph, with what it can bring back.
  "./langgraph": { own: 8_200, whole: 235_000 },
  "./checkpoint": { own: 9_600, whole: 9_600 },
  "./conformance": { own: 23_400, whole: 65_200 },
};

/** Bundles an entry and what it imports; `external` stays out. */
async function bundle(entry, external) {
  const result = await build({
    configFile: false,
    logLevel: "silent",
    publicDir: false,
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
