import type { Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { build, type BuildOptions, createServer, preview, type InlineConfig } from "vite";

/** The repository, without a slash at its end. */
export const ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/[\\/]$/, "");

/** A server on a loopback port of its own. */
export interface Server {
  /** With a slash at its end. */
  readonly origin: string;
  close(): Promise<void>;
}

function originOf(server: { address(): AddressInfo | string | null } | null): string {
  const address = server?.address();
  if (!address || typeof address === "string") throw new Error("the server has no port");
  return `http://127.0.0.1:${address.port}/`;
}

/**
 * Vite's dev server: the demo at `/`, any file of the repository at `/@fs/…`.
 * Nothing is watched, so that nobody's edit reloads the pages of a test, unless `config` says so.
 */
export async function startDevServer(config: InlineConfig = {}): Promise<Server> {
  // The servers of test runs side by side must not share what they have bundled.
  const cacheDir = await mkdtemp(join(tmpdir(), "agui-vite-"));
  const server = await createServer({
    configFile: `${ROOT}/vite.config.ts`,
    cacheDir,
    logLevel: "error",
    ...config,
    server: { host: "127.0.0.1", port: 0, hmr: false, watch: null, ...config.server },
  });
  await server.listen();
  return {
    origin: originOf(server.httpServer as never),
    async close() {
      await server.close();
      await rm(cacheDir, { recursive: true, force: true });
    },
  };
}

/**
 * Builds for production, one build after the other into one folder, and serves that.
 *
 * @param shared of all builds and of the server; its `mode` is "production" unless it says otherwise
 * @param builds what each of them brings: `rolldownOptions`, `minify`
 */
export async function startBuilt(shared: InlineConfig, builds: readonly BuildOptions[] = [{}]): Promise<Server> {
  const outDir = await mkdtemp(join(tmpdir(), "agui-built-"));
  const config: InlineConfig = { mode: "production", logLevel: "error", ...shared };
  // Vitest names its own environment, which a build would take for that of a development server.
  const { NODE_ENV } = process.env;
  process.env["NODE_ENV"] = "production";
  try {
    for (const one of builds) {
      await build({ ...config, build: { target: "es2022", ...one, outDir, emptyOutDir: one === builds[0] } });
    }
  } finally {
    // Assigned, undefined would become a word.
    if (NODE_ENV === undefined) delete process.env["NODE_ENV"];
    else process.env["NODE_ENV"] = NODE_ENV;
  }
  const server = await preview({
    ...config,
    build: { outDir },
    preview: { ...config.preview, host: "127.0.0.1", port: 0 },
  });
  return {
    origin: originOf(server.httpServer as never),
    async close() {
      // Browsers keep their connections open, and a server waits for them.
      (server.httpServer as unknown as HttpServer).closeAllConnections();
      await server.close();
      await rm(outDir, { recursive: true, force: true });
    },
  };
}

/** The built demo, as it is deployed: with its service worker and its manifest. */
export const startPreview = (): Promise<Server> => startBuilt({ configFile: `${ROOT}/vite.config.ts` });
