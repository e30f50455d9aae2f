import type { TestProject } from "vitest/node";
import { startDevServer } from "./server.js";
import { startTestPages } from "./test-pages.js";

/** One server of each kind for all files of a tabs suite. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const demo = await startDevServer();
  const pages = await startTestPages();
  project.provide("origin", demo.origin);
  project.provide("pages", pages.origin);
  return async () => {
    await demo.close();
    await pages.close();
  };
}
