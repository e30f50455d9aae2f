import { connectRuntime } from "ag-ui-local-runtime/client";
import { surfacesOf } from "../../../demo/recipes/a2ui.js";
import { workerName } from "./worker-name.js";

/** Query: `worker` (database and address of the MCP server), `thread`, `agent`, `url` (of the model's server). */
const query = new URLSearchParams(location.search);
const parameter = (name: string): string => query.get(name) ?? "";

const runtime = connectRuntime({
  hosts: {
    shared: (name) =>
      new SharedWorker(new URL("./recipe-agents.worker.ts", import.meta.url), {
        type: "module",
        name: workerName(parameter("worker"), name),
      }),
  },
  headers: { "x-model-url": parameter("url") },
});
const agent = runtime.agent(parameter("agent"), { threadId: parameter("thread") });
let run = "idle";
agent.run$.subscribe((it) => (run = it.is));
agent.follow();
let isReady = false;
void agent.connectAgent().then(() => (isReady = true));
let letGo = (): void => undefined;

const recipe = {
  view: () => ({
    isReady,
    run,
    said: agent.messages.map(({ role, content }) => `${role}: ${typeof content === "string" ? content : ""}`),
    questions: agent.pendingInterrupts.map(({ message = "" }) => message),
    surfaces: surfacesOf(agent.messages).map(({ operations }) => operations.length),
  }),
  ask: (content: string): void => {
    agent.addMessage({ id: `u${agent.messages.length}`, role: "user", content });
    // It may be broken and go on without this call.
    void agent.runAgent().catch(() => undefined);
  },
  answer: (approved: boolean): void => {
    const resume = agent.pendingInterrupts.map(({ id: interruptId }) => ({
      interruptId,
      status: "resolved" as const,
      payload: { approved },
    }));
    void agent.runAgent({ resume }).catch(() => undefined);
  },
  /** Takes a lock that others wait for; resolves once it is held. */
  hold: (lock: string) =>
    new Promise<void>((resolve) => {
      void navigator.locks.request(lock, () => {
        resolve();
        return new Promise<void>((end) => (letGo = end));
      });
    }),
  letGo: (): void => letGo(),
};

declare global {
  interface Window {
    recipe: typeof recipe;
  }
}
window.recipe = recipe;
