import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import type { Remote } from "../lab.js";
import type { Answer, Call } from "./serve.js";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The call took longer than it may; its process was ended. */
export class CutOff extends Error {}

/** A Node process that measures. It is started again after each cut. */
export interface NodeProcess<Api> {
  /** @param capMs after which a call is cut off: rejects with {@link CutOff} */
  calls(capMs: number): Remote<Api>;
  close(): Promise<void>;
}

/**
 * @param file of this folder, without its ending: it serves the calls
 * @param argv what the process is started with
 * @param warmUp called with each new process
 */
export async function startNode<Api>(
  file: "child" | "counting" | "devices",
  argv: readonly string[],
  warmUp: (calls: Remote<Api>) => Promise<void> = () => Promise.resolve(),
): Promise<NodeProcess<Api>> {
  // Built, as a host would be: under Vite's own module runner each import is a lookup. Below node_modules, where what it
  // imports is found.
  const outDir = join(at("../../.."), `node_modules/.cache/ag-ui-local-runtime/bench-${file}-${process.pid}`);
  await build({
    configFile: false,
    root: at(".."),
    logLevel: "error",
    resolve: { alias: [{ find: /^ag-ui-local-runtime$/, replacement: at("../../../src/index.ts") }] },
    build: { ssr: at(`${file}.ts`), outDir, emptyOutDir: true, target: "node20", minify: false },
  });
  let running: ChildProcess | undefined;
  const end = (): void => void running?.kill("SIGKILL");
  process.once("exit", end);

  async function start(): Promise<ChildProcess> {
    const env = { ...process.env, COPILOTKIT_TELEMETRY_DISABLED: "true", DO_NOT_TRACK: "1", SCARF_ANALYTICS: "false" };
    const child = fork(join(outDir, `${file}.js`), argv, {
      env,
      execArgv: ["--max-old-space-size=4096"],
    });
    await once(child, "message");
    return child;
  }

  async function ask(child: ChildProcess, call: Call, capMs: number): Promise<unknown> {
    const over = new AbortController();
    const { signal } = over;
    const cut = setTimeout(() => over.abort(), capMs);
    try {
      const exited = once(child, "exit", { signal }).then(() => {
        throw new Error(`the process ended during ${call.method}`);
      });
      const answered = once(child, "message", { signal });
      child.send(call);
      const [answer] = (await Promise.race([answered, exited])) as [Answer];
      if ("error" in answer) throw new Error(answer.error);
      return answer.value;
    } catch (error) {
      end();
      running = undefined;
      throw signal.aborted ? new CutOff(call.method, { cause: error }) : error;
    } finally {
      clearTimeout(cut);
      over.abort();
    }
  }

  const remote = (child: () => Promise<ChildProcess>, capMs: number): Remote<Api> =>
    new Proxy({} as Remote<Api>, {
      get:
        (_, method) =>
        async (...args: unknown[]) =>
          ask(await child(), { method: String(method), args }, capMs),
    });

  async function warm(): Promise<ChildProcess> {
    if (running !== undefined) return running;
    const child = await start();
    running = child;
    await warmUp(remote(() => Promise.resolve(child), 60_000));
    return child;
  }

  return {
    calls: (capMs) => remote(warm, capMs),
    async close() {
      end();
      process.off("exit", end);
      await rm(outDir, { recursive: true, force: true });
    },
  };
}
