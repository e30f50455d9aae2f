import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { installPackages } from "../../../test/setup/install.mjs";
import { startBuilt, startDevServer } from "../../../test/tabs/driver/server.js";

const FOLDER = fileURLToPath(new URL("..", import.meta.url));

/** Installs CopilotKit; serves the page as it is developed (StrictMode runs effects twice there), and built. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!installPackages(FOLDER)) throw new Error("the packages of demo/copilotkit could not be installed");
  const config = { configFile: `${FOLDER}vite.config.ts` };
  const built = await startBuilt(config);
  const developed = await startDevServer(config);
  project.provide("copilotkit", { built: built.origin, developed: developed.origin });
  return async () => {
    await built.close();
    await developed.close();
  };
}
