import { connectRuntime, ThreadStore } from "ag-ui-local-runtime/client";
import { workerName } from "./worker-name.js";

/** Query: `worker` (database and host), `thread`, `url` (of the model's server), `key`. */
const query = new URLSearchParams(location.search);
const parameter = (name: string): string => query.get(name) ?? "";

const runtime = connectRuntime({
  hosts: {
    shared: (name) =>
      new SharedWorker(new URL("./ai.worker.ts", import.meta.url), {
        type: "module",
        name: workerName(parameter("worker"), name),
        extendedLifetime: true,
      }),
  },
  headers: { "x-model-url": parameter("url"), "x-model-key": parameter("key") },
});
const store = new ThreadStore(runtime, { agentId: "assistant", threadId: parameter("thread") });
store.subscribe(() => undefined);

const ai = {
  view: () => {
    const { status, run, messages, failure } = store.getSnapshot();
    return { isReady: status === "ready", run: run.is, messages, failure: failure?.message };
  },
  ask: (content: string) => void store.send(content).catch(() => undefined),
  stop: () => void store.stop(),
};

declare global {
  interface Window {
    ai: typeof ai;
  }
}
window.ai = ai;
