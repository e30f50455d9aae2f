// How large each entry of the package is for a page: bundled, minified, gzipped.
import { gzipSync } from "node:zlib";
import { build } from "vite";

/** The most that an entry may have, in bytes of minified and gzipped code. `own` is without the peers. */
export const BUDGETS = {
  ".": { own: 40_500, whole: 69_000 },
  "./worker": { own: 42_000, whole: 82_000 },
  "./client": { own: 10_200, whole: 58_200 },
  "./conformance": { own: 19_000, whole: 61_000 },
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
  const code = result.output.map((output) => output.code ?? "").join("\n");
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
