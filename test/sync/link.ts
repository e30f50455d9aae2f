import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** What stands between a device and the servers. */
export interface Link {
  readonly url: string;
  /** Ends what is connected, and lets nobody connect. */
  cut(): void;
  /** Lets nothing through, and tells nobody. */
  freeze(): void;
  /** Each piece arrives so much later, in order. */
  slow(ms: number): void;
  /** As it was. */
  mend(): void;
}

/** A proxy of the test, before one server. */
export async function linkTo(server: string): Promise<Link> {
  const { protocol, port } = new URL(server);
  const open = new Set<Socket>();
  let mode: "open" | "cut" | "frozen" = "open";
  let delay = 0;
  const pipe = (from: Socket, to: Socket): void => {
    open.add(from);
    from.on("data", (piece) => {
      if (mode === "frozen") return;
      if (delay === 0) to.write(piece);
      else setTimeout(() => to.writable && to.write(piece), delay);
    });
    from.on("error", () => undefined);
    from.on("close", () => {
      open.delete(from);
      to.destroy();
    });
  };
  const listening = createServer((client) => {
    if (mode === "cut") return void client.destroy();
    const upstream = connect(Number(port), "127.0.0.1");
    pipe(client, upstream);
    pipe(upstream, client);
  });
  listening.listen(0, "127.0.0.1");
  await once(listening, "listening");
  const endAll = (): void => open.forEach((socket) => void socket.destroy());
  onTestFinished(() => {
    listening.close();
    endAll();
  });
  return {
    url: `${protocol}//127.0.0.1:${(listening.address() as AddressInfo).port}`,
    cut() {
      mode = "cut";
      endAll();
    },
    freeze: () => void (mode = "frozen"),
    slow: (ms) => void (delay = ms),
    mend() {
      // What was swallowed is missing in these connections.
      if (mode === "frozen") endAll();
      mode = "open";
      delay = 0;
    },
  };
}
