import type { Rolldown } from "vite";

type Context = Rolldown.ChunkingContext;

/** What is loaded with `entry`; with `late`, also what that imports when it is needed. Modules by their paths. */
function reachedFrom(entry: string, context: Context, late = false): ReadonlySet<string> {
  const reached = new Set([entry]);
  for (const id of reached) {
    const module = context.getModuleInfo(id);
    for (const imported of module?.importedIds ?? []) reached.add(imported);
    if (late) for (const imported of module?.dynamicallyImportedIds ?? []) reached.add(imported);
  }
  return reached;
}

/**
 * In which file of the package a module is that the host's worker loads at its start; undefined: wherever the bundler puts it.
 *
 * Left to the bundler, they would be forty files. The bundler of an app makes one more file of each of them that several
 * late parts share (Rolldown, esbuild), so that the app's worker would begin with thirty requests: it took three times as
 * long to answer. What other entries load is kept apart, so that none of them loads the host, and a service worker stays a
 * script of one file.
 */
function hostChunks(entries: Readonly<Record<string, string>>, context: Context): (id: string) => string | undefined {
  const reached = (names: readonly string[], late = false): ReadonlySet<string> =>
    new Set(names.flatMap((name) => [...reachedFrom(entries[name]!, context, late)]));
  const own = new Set(Object.values(entries));
  const host = reached(["worker"]);
  const tab = reached(["client"]);
  const tabLater = reached(["client"], true);
  const relay = reached(["service-worker"]);
  const stores = reached(["checkpoint", "langgraph"]);
  const others = reached(["node", "encryption", "ai", "sync"]);
  // The AG-UI client comes with it.
  const agents = reached(["define-agent"]);
  const runner = reached(["index"]);
  return (id) => {
    if (own.has(id) || !host.has(id) || (agents.has(id) && !tab.has(id))) return undefined;
    if (relay.has(id)) return "base";
    if (tab.has(id) || others.has(id)) return "shared";
    if (tabLater.has(id)) return "shared-later";
    if (stores.has(id)) return "stores";
    return runner.has(id) ? "runner" : "host";
  };
}

/** How the package's build is cut into files: see {@link hostChunks}. */
export function packageChunks(entries: Readonly<Record<string, string>>): Rolldown.CodeSplittingOptions {
  let chunkOf: ((id: string) => string | undefined) | undefined;
  // A group takes what its modules import along: the lower one comes first.
  const groups = ["base", "shared", "shared-later", "stores", "runner", "host"].map((chunk, index) => ({
    name: (id: string, context: Context) => {
      chunkOf ??= hostChunks(entries, context);
      return chunkOf(id) === chunk ? chunk : null;
    },
    debugName: chunk,
    priority: 6 - index,
  }));
  return { groups };
}

/** How an app's worker is cut that is built from the sources: what it loads at its start is one file. */
export const ONE_START: Rolldown.CodeSplittingOptions = { groups: [{ name: "start", tags: ["$initial"] }] };
