import type { TestProject } from "vitest/node";
import { startMcpServer } from "../unit/runtime/integrations/mcp-server.js";

/** Servers that the tests in the page call, in Node. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const mcp = await startMcpServer();
  project.provide("mcp", { url: mcp.url, sseUrl: mcp.sseUrl });
  return () => mcp.close();
}
