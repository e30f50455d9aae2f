import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { Engine } from "./driver/browser.js";
import type { Preferences } from "./driver/launch.js";

/** Another address of a server: plain http on a name that is not this machine's own, so not a secure context. */
export interface InsecureOrigin {
  /** With a slash at its end. */
  readonly origin: string;
  /** What a browser's profile needs to reach it. */
  readonly preferences: Preferences;
  close(): Promise<void>;
}

/**
 * Browsers ask a proxy for every name but the loopback's, and this one has the same answer for all of them: it asks
 * the server, which needs no name in the system's table of hosts.
 *
 * @param served the server's own origin
 */
export async function startInsecureOrigin(engine: Engine, served: string): Promise<InsecureOrigin> {
  const { hostname, port, host } = new URL(served);
  const proxy = createServer((asked, answer) => {
    const { pathname, search } = new URL(asked.url ?? "/", served);
    const { method, headers } = asked;
    const asking = request({ hostname, port, path: pathname + search, method, headers: { ...headers, host } });
    asking.on("error", () => answer.destroy());
    asking.on("response", (answered) => {
      answer.writeHead(answered.statusCode ?? 502, answered.headers);
      answered.pipe(answer);
    });
    asked.pipe(asking);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port: ofProxy } = proxy.address() as AddressInfo;
  return {
    origin: "http://insecure.test/",
    preferences:
      engine === "chromium"
        ? { proxy: { mode: "fixed_servers", server: `http=127.0.0.1:${ofProxy}` } }
        : { "network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": ofProxy },
    async close() {
      // Browsers keep their connections open, and a server waits for them.
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
