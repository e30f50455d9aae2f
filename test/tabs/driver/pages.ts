import type { TestProject } from "vitest/node";
import { startDevServer } from "./server.js";

/** One dev server for all files of a tabs suite. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startDevServer();
  project.provide("origin", server.origin);
  return () => server.close();
}
