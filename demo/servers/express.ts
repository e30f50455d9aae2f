import express from "express";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { runtime } from "./runtime.js";

const app = express();
app.use("/api/agents", createNodeHandler(createRuntimeHandler({ runtime, basePath: "/api/agents" })));

export const server = app.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1");
