import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A server outside of the browser, where no kill reaches it. */
export interface Receiver {
  /** Where pages and workers post JSON to, from any origin. */
  readonly url: string;
  close(): Promise<void>;
}

/** @param take is given what was posted, once it is whole; what it returns is the answer */
export async function startReceiver(take: (posted: unknown) => unknown): Promise<Receiver> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const answer = take(JSON.parse(Buffer.concat(parts).toString()));
      response.setHeader("access-control-allow-origin", "*");
      if (answer === undefined) response.writeHead(204).end();
      else response.end(JSON.stringify(answer));
    });
    // A page that dies in the middle of a report: it is not whole.
    request.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}/`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
