import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { onTestFinished, vi } from "vitest";

export interface Served {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
  /** The answers that the server has begun, in order. */
  readonly answers: readonly ServerResponse[];
}

/** A server on this machine, for as long as the test lasts. */
export async function serve(listener: RequestListener): Promise<Served> {
  return listening(createServer(listener));
}

/** The same of a server that somebody else made. */
export async function listening(server: Server): Promise<Served> {
  const answers: ServerResponse[] = [];
  server.prependListener("request", (_, res: ServerResponse) => answers.push(res));
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const { port } = server.address() as AddressInfo; // it listens on a port
  return { server, port, url: `http://127.0.0.1:${port}`, answers };
}

export interface Wire {
  readonly socket: Socket;
  /** All that came so far. */
  readonly text: () => string;
  /** Resolves once the server has closed its side, or broken the connection. */
  readonly closed: Promise<void>;
}

/** A connection that says exactly this. */
export function say(port: number, text: string): Wire {
  const socket = connect(port, "127.0.0.1");
  let received = "";
  socket.setEncoding("utf8").on("data", (piece: string) => (received += piece));
  // A connection that the server breaks is what some tests are about.
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.once("end", resolve);
    socket.once("close", () => resolve());
  });
  socket.write(text);
  onTestFinished(() => void socket.destroy());
  return { socket, text: () => received, closed };
}

/** All that a connection gets that says exactly this and is closed by the server. */
export async function exchange(port: number, text: string): Promise<string> {
  const wire = say(port, text);
  await wire.closed;
  return wire.text();
}

/** Resolves when it is so. */
export async function until(holds: () => boolean): Promise<void> {
  await vi.waitUntil(holds, { interval: 5 });
}
