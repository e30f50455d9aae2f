import { join } from "node:path";
import type { Plugin } from "vite";
import type { TestProject } from "vitest/node";
import { ROOT, startDevServer } from "./server.js";
import { startTestPages } from "./test-pages.js";

/** In place of a module that an agent of the demo imports, one of test/tabs/pages that tests can hold (`holdRuns`). */
const HELD = [
  { from: "/demo/reader/agent.ts", source: "./reader.js", to: "held-reader.ts" },
  { from: "/demo/graph/agent.ts", source: "./research.js", to: "held-research.ts" },
];
const heldAgents: Plugin = {
  name: "held-agents",
  enforce: "pre",
  resolveId(source, importer = "") {
    const found = HELD.find((it) => it.source === source && importer.replaceAll("\\", "/").endsWith(it.from));
    return found && join(ROOT, "test/tabs/pages", found.to);
  },
};

/** One server of each kind for all files of a tabs suite. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const demo = await startDevServer({ plugins: [heldAgents] });
  const pages = await startTestPages();
  project.provide("origin", demo.origin);
  project.provide("pages", pages.origin);
  return async () => {
    await demo.close();
    await pages.close();
  };
}
