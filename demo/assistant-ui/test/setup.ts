import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { installPackages } from "../../../test/setup/install.mjs";
import { startBuilt } from "../../../test/tabs/driver/server.js";

const FOLDER = fileURLToPath(new URL("..", import.meta.url));

/** Installs assistant-ui, builds the page, and serves it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!installPackages(FOLDER)) throw new Error("the packages of demo/assistant-ui could not be installed");
  const pages = await startBuilt({ configFile: `${FOLDER}vite.config.ts` });
  project.provide("assistantUi", pages.origin);
  return () => pages.close();
}
