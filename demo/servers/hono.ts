import { serve } from "@hono/node-server";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { Hono } from "hono";
import { runtime } from "./runtime.js";

// The names it is reached by. Without them, pages of the internet reach it by a name that points at this machine.
const allowedHosts = ["localhost", "127.0.0.1", "::1"];
const handler = createRuntimeHandler({ runtime, basePath: "/api/agents", allowedHosts });
const app = new Hono();
app.all("/api/agents/*", (context) => handler(context.req.raw));

export const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env["PORT"] ?? 3000) });
