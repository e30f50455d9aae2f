import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** The run that an agent on a server is asked for, of which its answers make their events. */
export interface Ids {
  readonly threadId: string;
  readonly runId: string;
}

export interface AgentServer {
  readonly url: string;
  /** How many answers are open. */
  readonly open: () => number;
}

/** A server of an agent, which the tabs' worker may ask from its own origin. */
export async function serverThat(answer: (response: ServerResponse, ids: Ids) => void): Promise<AgentServer> {
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    response.setHeader("access-control-allow-origin", "*").setHeader("access-control-allow-headers", "*");
    if (request.method === "OPTIONS") return void response.writeHead(204).end();
    open.add(response);
    response.once("close", () => open.delete(response));
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => answer(response, JSON.parse(body) as Ids));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, open: () => open.size };
}

export const sse = (events: readonly object[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
