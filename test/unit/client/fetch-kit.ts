import { onTestFinished } from "vitest";
import { connectRuntime, type RuntimeConnection } from "../../../src/client/connect-runtime.js";
import type { ConnectRuntimeOptions } from "../../../src/client/host-link.js";
import type { BeforeRequestContext } from "../../../src/runtime/middleware.js";
import { serveRuntime, type RuntimeHost } from "../../../src/worker/serve-runtime.js";
import { freshDb } from "../runner/kit.js";

/** Hosts that answer requests by `handle`: the next one is there once the one before has ended. */
export function answering(
  handle: (request: Request) => Promise<Response>,
  options: Partial<ConnectRuntimeOptions> = {},
) {
  const dbName = freshDb();
  const hosts: RuntimeHost[] = [];
  const open = (): RuntimeHost => {
    // What a middleware answers is the answer.
    const beforeRequestMiddleware = ({ request, path }: BeforeRequestContext) =>
      path === "/threads" ? undefined : handle(request);
    const host = serveRuntime({ dbName, agents: {}, beforeRequestMiddleware });
    hosts.push(host);
    return host;
  };
  let host = open();
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() }, ...options });
  onTestFinished(async () => {
    await runtime.close();
    await Promise.all(hosts.map((it) => it.close()));
  });
  return {
    runtime,
    /** The host ends, and another one takes its place. */
    replace: async (): Promise<void> => {
      const old = host;
      host = open();
      await old.close();
    },
  };
}

/** A runtime that has no host. */
export function hostless(): RuntimeConnection {
  const dedicated = (): Worker => {
    throw new Error("no workers here");
  };
  const runtime = connectRuntime({ hosts: { dedicated } });
  onTestFinished(() => runtime.close());
  return runtime;
}

/** A body that begins with "one" and goes no further. */
export function openBody(): { readonly stream: ReadableStream<Uint8Array>; readonly cancelled: () => boolean } {
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("one")),
    cancel: () => void (cancelled = true),
  });
  return { stream, cancelled: () => cancelled };
}
