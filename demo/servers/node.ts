import { createServer } from "node:http";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { runtime } from "./runtime.js";

const handler = createRuntimeHandler({ runtime, basePath: "/api/agents" });

export const server = createServer(createNodeHandler(handler));
server.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1");
