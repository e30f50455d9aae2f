import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalAgent } from "ag-ui-local-runtime/client";
import type { Tab } from "./driver/browser.js";
import { useBrowser } from "./driver/scripted.js";
import { ROOT, type Server, startDevServer } from "./driver/server.js";

declare global {
  interface Window {
    agent: LocalAgent;
  }
}

const agentFile = (answer: string): string => `
import { defineAgent } from "ag-ui-local-runtime/worker";
export const oracle = defineAgent(async function* ({ runId: messageId }) {
  yield { type: "TEXT_MESSAGE_START", messageId, role: "assistant" };
  yield { type: "TEXT_MESSAGE_CONTENT", messageId, delta: ${JSON.stringify(answer)} };
  yield { type: "TEXT_MESSAGE_END", messageId };
});
`;

/** A small app, as somebody would begin one. */
const FILES = {
  "index.html": `<!doctype html><title>App</title><link rel="icon" href="data:," /><script type="module" src="/main.ts"></script>`,
  "main.ts": `
    import { connectRuntime } from "ag-ui-local-runtime/client";
    const runtime = connectRuntime({
      hosts: {
        shared: () =>
          new SharedWorker(new URL("./agents.worker.ts", import.meta.url), { type: "module", extendedLifetime: true }),
      },
    });
    window.agent = runtime.agent("oracle", { threadId: "thread" });
    window.agent.follow();
  `,
  "agents.worker.ts": `
    import { serveRuntime } from "ag-ui-local-runtime/worker";
    import { oracle } from "./oracle.js";
    serveRuntime({ agents: { oracle }, dbName: "dev" });
  `,
  "oracle.ts": agentFile("the old answer"),
};

const given = useBrowser();
let folder: string;
let server: Server;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agui-app-"));
  await Promise.all(Object.entries(FILES).map(([name, text]) => writeFile(join(folder, name), text)));
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"), "junction");
  server = await startDevServer({
    root: folder,
    server: { hmr: true, watch: {}, fs: { allow: [folder, ROOT] } },
  });
});

afterAll(async () => {
  await server?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** Asks the agent; the text of its answer. */
const ask = (tab: Tab): Promise<string> =>
  tab.evaluate(async () => {
    window.agent.addMessage({ id: crypto.randomUUID(), role: "user", content: "?" });
    await window.agent.runAgent();
    return String(window.agent.messages.at(-1)?.content);
  });

test("an edited agent answers after a reload, although another tab held the worker (L1)", async () => {
  const [a, b] = [await given.browser.newTab(server.origin), await given.browser.newTab(server.origin)];
  for (const tab of [a, b]) await tab.waitFor(() => "agent" in window);
  expect(await ask(a)).toBe("the old answer");
  await b.waitFor(() => window.agent.messages.at(-1)?.content === "the old answer");

  for (const tab of [a, b]) await tab.evaluate(() => void Object.assign(window, { beforeEdit: true }));
  await writeFile(join(folder, "oracle.ts"), agentFile("the new answer"));
  // Vite reloads the pages itself; a reload of ours may not fall into that.
  for (const tab of [a, b]) await tab.waitFor(() => !("beforeEdit" in window) && "agent" in window);
  await a.reload();
  await a.waitFor(() => "agent" in window);
  expect(await ask(a)).toBe("the new answer");
  await b.waitFor(() => window.agent.messages.at(-1)?.content === "the new answer");
});
