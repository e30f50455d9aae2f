import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";
import { LabTabs } from "./driver/scripted.js";
import { ROOT, type Server, startDevServer } from "./driver/server.js";

/** What a host is made of: `source` is what the page loads by itself, `dedicated` a worker of the tab, else a script. */
export type MadeOf = "source" | "dedicated" | { readonly script: string };

/** Tabs whose hosts are of several kinds and share one fresh database. */
export class HostTabs extends LabTabs {
  /** @param hosts what the host of this name is made of; `source` where it is not named */
  constructor(
    given: ConstructorParameters<typeof LabTabs>[0],
    private readonly hosts: Readonly<Record<string, MadeOf>>,
    private readonly origin?: string,
  ) {
    super(given);
  }

  override url(host = "one"): string {
    const url = new URL(super.url(host).replace("scripted.html", "hosts.html"));
    const madeOf = this.hosts[host] ?? "source";
    if (madeOf === "dedicated") url.searchParams.set("dedicated", "");
    else if (madeOf !== "source") url.searchParams.set("script", madeOf.script);
    return this.origin === undefined ? url.href : new URL(`${url.pathname}${url.search}`, this.origin).href;
  }

  /** The database that they share. */
  get dbName(): string {
    return this.workerName("").slice(0, -1);
  }
}

/** A worker file of test/tabs/pages as the dev server gives it, for `script`. */
export const workerSource = (name: string): MadeOf => ({
  script: `/@fs${ROOT.startsWith("/") ? "" : "/"}${ROOT.replaceAll("\\", "/")}/test/tabs/pages/${name}.worker.ts?worker_file&type=module`,
});

/** A dev server that gives, besides the sources, the worker of scripted.html as it is built for production. */
export async function startTwoBuilds(): Promise<Server & { readonly built: MadeOf }> {
  const outDir = await mkdtemp(join(tmpdir(), "agui-host-"));
  // Vitest names its own environment, which a build would take for that of a development server.
  const { NODE_ENV } = process.env;
  process.env["NODE_ENV"] = "production";
  await build({
    configFile: false,
    root: ROOT,
    publicDir: false,
    logLevel: "error",
    resolve: { tsconfigPaths: true },
    build: {
      target: "es2022",
      outDir,
      minify: true,
      modulePreload: false,
      rolldownOptions: {
        input: join(ROOT, "test/tabs/pages/scripted.worker.ts"),
        output: { entryFileNames: "host.js" },
      },
    },
  }).finally(() => (process.env["NODE_ENV"] = NODE_ENV));
  // Files of this folder are served as they are.
  const server = await startDevServer({ publicDir: outDir });
  return {
    origin: server.origin,
    built: { script: "/host.js" },
    async close() {
      await server.close();
      await rm(outDir, { recursive: true, force: true });
    },
  };
}
