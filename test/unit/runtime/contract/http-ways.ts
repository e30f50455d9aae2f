import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { createRuntimeHandler, type AgentRuntime, type RuntimeHandlerOptions } from "ag-ui-local-runtime/runtime";
import { enveloped, type WayIn } from "./way-in.js";

const BASE = "/api/copilotkit";

type HandlerOptions = Omit<RuntimeHandlerOptions, "runtime" | "basePath">;

const handlerOf = (runtime: AgentRuntime, options: HandlerOptions) =>
  createRuntimeHandler({ runtime, basePath: BASE, ...options });

/** A server of Node's own `http`. */
export const httpWay = (runtime: AgentRuntime, options: HandlerOptions = {}): Promise<WayIn> =>
  served("http", createNodeHandler(handlerOf(runtime, options)), runtime, options);

/** Express with the handler below a path, and a parser of bodies in front of it where `parses`. */
export function expressWay(
  runtime: AgentRuntime,
  { parses = false, ...options }: HandlerOptions & { readonly parses?: boolean } = {},
): Promise<WayIn> {
  const app = express();
  if (parses) app.use(express.json({ limit: "50mb" }));
  app.use(BASE, createNodeHandler(handlerOf(runtime, options)));
  return served("Express", app, runtime, options);
}

/** Hono on Node, with the handler for all below a path. */
export function honoWay(runtime: AgentRuntime, options: HandlerOptions = {}): Promise<WayIn> {
  const handler = handlerOf(runtime, options);
  const app = new Hono();
  app.all(BASE, (context) => handler(context.req.raw));
  app.all(`${BASE}/*`, (context) => handler(context.req.raw));
  return served("Hono", getRequestListener(app.fetch), runtime, options);
}

async function served(
  name: string,
  listener: RequestListener,
  runtime: AgentRuntime,
  { mode }: HandlerOptions,
): Promise<WayIn> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // of a server that listens on a port
  const url = (path: string): string => `http://127.0.0.1:${port}${BASE}${path}`;
  const way: WayIn = {
    name,
    request: (path, init) => fetch(url(path), init),
    url,
    close: async () => {
      await runtime.close();
      await stopped(server);
    },
  };
  return mode === "single-route" ? enveloped(way) : way;
}

function stopped(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  return closed;
}
