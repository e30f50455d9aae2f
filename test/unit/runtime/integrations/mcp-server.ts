import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

/** A server on a loopback port of its own. */
export interface LoopbackServer {
  /** Without a slash at its end. */
  readonly origin: string;
  close(): Promise<void>;
}

/** An MCP server whose tool `weather` comes with a user interface, and `secret`, which comes with none. */
export interface McpServer extends LoopbackServer {
  /** Streamable HTTP. */
  readonly url: string;
  /** HTTP with server-sent events, the older transport. */
  readonly sseUrl: string;
  /** Arguments of each call of `weather`. */
  readonly called: readonly unknown[];
  /** The methods of the protocol that were asked for, in order. */
  readonly asked: readonly string[];
  /** The Authorization header of each request that had one. */
  readonly tokens: readonly string[];
}

/** What every page may do: a page of another origin reads the session's id only where it is exposed. */
const CORS = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET, POST, DELETE",
  "access-control-allow-headers": "*, authorization",
  "access-control-expose-headers": "mcp-session-id",
};

export const WEATHER_UI = "ui://weather/view.html";

/** Serves `listener` on 127.0.0.1. */
export async function serveOnLoopback(
  listener: (req: IncomingMessage, res: ServerResponse) => unknown,
): Promise<LoopbackServer> {
  const server = createServer((req, res) => void listener(req, res));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // it listens on a port
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        // Clients keep theirs open.
        server.closeAllConnections();
      }),
  };
}

/** @param calls what happens at a call of `weather`, before it is answered; given whose turn it is */
export async function startMcpServer(calls: () => Promise<void> | void = () => undefined): Promise<McpServer> {
  const called: unknown[] = [];
  const asked: string[] = [];
  const tokens: string[] = [];
  const streams = new Map<string, SSEServerTransport>();

  /** A server for one connection: nothing is kept between two. */
  const protocol = (): Server => {
    const server = new Server({ name: "weather", version: "1.0.0" }, { capabilities: { tools: {}, resources: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: [
        {
          name: "weather",
          description: "The weather of a place",
          inputSchema: { type: "object", properties: { place: { type: "string" } } },
          _meta: { ui: { resourceUri: WEATHER_UI } },
        },
        { name: "secret", inputSchema: { type: "object", properties: {} } },
      ],
    }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
      called.push(params.arguments);
      await calls();
      return { content: [{ type: "text", text: `Rain in ${String(params.arguments?.["place"])}` }] };
    });
    server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => ({
      contents: [{ uri: params.uri, mimeType: "text/html;profile=mcp-app", text: "<p>weather</p>" }],
    }));
    return server;
  };

  const { origin, close } = await serveOnLoopback(async (req, res) => {
    for (const [name, value] of Object.entries(CORS)) res.setHeader(name, value);
    if (req.method === "OPTIONS") return void res.writeHead(204).end();
    if (req.headers.authorization !== undefined) tokens.push(req.headers.authorization);
    const { pathname, searchParams } = new URL(req.url ?? "/", "http://localhost");
    if (pathname === "/sse") {
      const transport = new SSEServerTransport("/messages", res);
      streams.set(transport.sessionId, transport);
      return protocol().connect(transport);
    }
    const body = req.method === "POST" ? await jsonOf(req) : undefined;
    const { method } = (body ?? {}) as { readonly method?: string };
    if (method !== undefined) asked.push(method);
    const stream = streams.get(searchParams.get("sessionId") ?? "");
    if (stream !== undefined) return stream.handlePostMessage(req, res, body);
    // Without sessions; the SDK's declarations do not know exactOptionalPropertyTypes.
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined } as object);
    await protocol().connect(transport as Parameters<Server["connect"]>[0]);
    await transport.handleRequest(req, res, body);
  });
  return { origin, url: `${origin}/mcp`, sseUrl: `${origin}/sse`, called, asked, tokens, close };
}

async function jsonOf(req: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of req) text += String(chunk);
  return JSON.parse(text) as unknown;
}
