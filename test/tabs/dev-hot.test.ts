import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useBrowser } from "./driver/scripted.js";
import { ROOT, type Server, startDevServer } from "./driver/server.js";

declare global {
  interface Window {
    /** What the module of this edition can do. */
    edition: string;
    ask(runId: string): Promise<string>;
    begin(runId: string): void;
    shown(): Promise<{ texts: string[]; runs: string[] }>;
    stop(runId: string): Promise<boolean>;
  }
}

/** A module that runs agents in the page itself, and takes part in hot reload. */
const moduleOf = (edition: string): string => `
  import { AbstractAgent } from "@ag-ui/client";
  import { Observable, lastValueFrom, toArray } from "rxjs";
  import { InMemoryAgentRunner } from "ag-ui-local-runtime";

  const runner = new InMemoryAgentRunner({ stopGraceMs: 100 });
  class Oracle extends AbstractAgent {
    run({ threadId, runId }) {
      return new Observable((subscriber) => {
        subscriber.next({ type: "RUN_STARTED", threadId, runId });
        subscriber.next({ type: "TEXT_MESSAGE_START", messageId: runId, role: "assistant" });
        subscriber.next({ type: "TEXT_MESSAGE_CONTENT", messageId: runId, delta: "${edition} answers" });
        if (runId.startsWith("open")) return;
        subscriber.next({ type: "TEXT_MESSAGE_END", messageId: runId });
        subscriber.next({ type: "RUN_FINISHED", threadId, runId });
        subscriber.complete();
      });
    }
  }
  const run = (runId) =>
    runner.run({
      threadId: "t",
      agent: new Oracle({ agentId: "oracle" }),
      input: { threadId: "t", runId, messages: [{ id: runId + "-u", role: "user", content: "?" }], state: {}, tools: [], context: [], forwardedProps: {} },
    });
  Object.assign(window, {
    edition: "${edition}",
    begin: (runId) => void run(runId).subscribe(),
    ask: async (runId) => (await lastValueFrom(run(runId).pipe(toArray()))).at(-1).type,
    stop: (runId) => runner.stop({ threadId: "t", runId }),
    shown: async () => ({
      texts: (await runner.getThreadMessages("t")).filter(({ role }) => role === "assistant").map(({ content }) => content),
      runs: (await runner.listRuns("t")).map(({ runId, status }) => runId + " " + status).reverse(),
    }),
  });
  import.meta.hot.accept();
`;

const given = useBrowser();
let folder: string;
let server: Server;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agui-hot-"));
  await writeFile(
    join(folder, "index.html"),
    `<!doctype html><title>Hot</title><link rel="icon" href="data:," /><script type="module" src="/main.ts"></script>`,
  );
  await writeFile(join(folder, "main.ts"), moduleOf("first"));
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"), "junction");
  server = await startDevServer({ root: folder, server: { hmr: true, watch: {}, fs: { allow: [folder, ROOT] } } });
});

afterAll(async () => {
  await server?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

test("after a hot reload the threads of the in-memory runner are there, and a live run can be stopped", async () => {
  const tab = await given.browser.newTab(server.origin);
  await tab.waitFor(() => window.edition === "first");
  expect(await tab.evaluate(() => window.ask("r0"))).toBe("RUN_FINISHED");
  await tab.evaluate(() => window.begin("open"));
  await tab.waitFor(async () => (await window.shown()).texts.length === 2);
  await tab.evaluate(() => void Object.assign(window, { sameDocument: true }));

  await writeFile(join(folder, "main.ts"), moduleOf("second"));
  await tab.waitFor(() => window.edition === "second");
  expect(await tab.evaluate(() => "sameDocument" in window)).toBe(true);
  expect(await tab.evaluate(() => window.shown())).toEqual({
    texts: ["first answers", "first answers"],
    runs: ["r0 finished", "open running"],
  });
  expect(await tab.evaluate(() => window.stop("open"))).toBe(true);
  await tab.waitFor(async () => (await window.shown()).runs.includes("open stopped"));
  expect(await tab.evaluate(() => window.ask("r1"))).toBe("RUN_FINISHED");
  expect((await tab.evaluate(() => window.shown())).texts).toEqual([
    "first answers",
    "first answers",
    "second answers",
  ]);
});
