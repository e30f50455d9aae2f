import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Report } from "../pages/soak-report.js";
import type { Piece, Seen } from "./check.js";

/** Keeps what pages were told outside of the browser, where no kill reaches it. */
export interface Collector {
  /** Where pages post their reports. */
  readonly url: string;
  /** What was reported so far. */
  seen(): Seen[];
  /** Drops what was reported so far. */
  forget(): void;
  /** How many pieces were reported, dropped ones too. */
  readonly pieces: number;
  close(): Promise<void>;
}

export async function startCollector(): Promise<Collector> {
  const loads = new Map<string, Seen & { readonly pieces: Piece[] }>();
  let pieces = 0;
  const take = ({ load, threadId, piece }: Report): void => {
    const key = `${load} ${threadId}`;
    const of = loads.get(key) ?? { load, threadId, pieces: [] };
    of.pieces.push(piece);
    loads.set(key, of);
    pieces++;
  };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      for (const report of JSON.parse(Buffer.concat(parts).toString()) as Report[]) take(report);
      response.writeHead(204).end();
    });
    // A page that dies in the middle of a report: it is not whole.
    request.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    seen: () => [...loads.values()],
    forget: () => loads.clear(),
    get pieces() {
      return pieces;
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
