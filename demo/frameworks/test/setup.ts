import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { installPackages } from "../../../test/setup/install.mjs";
import { startBuilt } from "../../../test/tabs/driver/server.js";

const FOLDER = fileURLToPath(new URL("..", import.meta.url));

/** Installs the frameworks, builds the pages, and serves them. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!installPackages(FOLDER)) throw new Error("the packages of demo/frameworks could not be installed");
  const config = { configFile: `${FOLDER}vite.config.ts` };
  const pages = await startBuilt(config);
  const react18 = await startBuilt({ ...config, mode: "react-18" });
  project.provide("pages", pages.origin);
  project.provide("react18", react18.origin);
  return async () => {
    await pages.close();
    await react18.close();
  };
}
