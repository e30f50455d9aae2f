import { connectRuntime, RunnerError, type RuntimeStatus } from "ag-ui-local-runtime/client";
import { createEncryptionKey } from "ag-ui-local-runtime/encryption";
import { workerName } from "./worker-name.js";

/** Query: `worker` (database), `thread`. */
const query = new URLSearchParams(location.search);
const parameter = (name: string): string => query.get(name) ?? "";

const runtime = connectRuntime({
  hosts: {
    shared: (name) =>
      new SharedWorker(new URL("./locked.worker.ts", import.meta.url), {
        type: "module",
        name: workerName(parameter("worker"), name),
      }),
  },
});
let status: RuntimeStatus = { is: "connecting" };
runtime.status$.subscribe((it) => (status = it));
const agent = runtime.agent("echo", { threadId: parameter("thread") });
let run = "idle";
agent.run$.subscribe((it) => (run = it.is === "idle" ? `idle ${it.last?.status ?? ""}`.trim() : it.is));
agent.follow();
let letGo = (): void => undefined;

const codeOf = (error: unknown): string => (RunnerError.is(error) ? error.code : String(error));
/** What a call gave, or the code of its error. */
const told = async (call: Promise<unknown>): Promise<string> =>
  call.then((value) => JSON.stringify(value) ?? "done", codeOf);

const locked = {
  view: () => ({
    encryption: status.is === "connected" ? (status.encryption ?? "none") : status.is,
    host: status.is === "connected" ? status.bootId : undefined,
    run,
    said: agent.messages.map(({ role, content }) => `${role}: ${typeof content === "string" ? content : ""}`),
  }),
  ask: (content: string): Promise<string> => {
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
    return told(agent.runAgent().then(() => "ran"));
  },
  begin: (content: string): void => void locked.ask(content),
  unlock: (key: string) => told(runtime.encryption.unlock(key)),
  unlockByKey: () => told(createEncryptionKey().then((key) => runtime.encryption.unlock(key))),
  lock: () => told(runtime.encryption.lock()),
  changeKey: (from: string, to: string) => told(runtime.encryption.changeKey(from, to)),
  titles: () => told(runtime.threads.list().then((threads) => threads.map(({ title }) => title))),
  messages: () => told(runtime.threads.messages(parameter("thread")).then(({ messages }) => messages.length)),
  waiting: () => told(runtime.waiting.list()),
  isLive: () => told(runtime.runner().isRunning({ threadId: parameter("thread") })),
  http: async () => (await runtime.fetch(`/threads/${parameter("thread")}/messages`)).status,
  /** Every record of the database as text; bytes as Latin-1. */
  raw: async (): Promise<string> => {
    const db = await new Promise<IDBDatabase>((resolve, reject) => {
      const opening = indexedDB.open(parameter("worker"));
      opening.onsuccess = () => resolve(opening.result);
      opening.onerror = () => reject(opening.error ?? new Error("not opened"));
    });
    const stores = [...db.objectStoreNames];
    const records = await Promise.all(
      stores.map(
        (store) =>
          new Promise((resolve) => {
            const reading = db.transaction(store).objectStore(store).getAll();
            reading.onsuccess = () => resolve(reading.result);
          }),
      ),
    );
    db.close();
    return JSON.stringify(records, (_, value: unknown) =>
      value instanceof Uint8Array ? new TextDecoder("latin1").decode(value) : value,
    );
  },
  /** Takes the lock that the agent waits for; resolves once it is held. */
  hold: () =>
    new Promise<void>((resolve) => {
      void navigator.locks.request("locked-hold", () => {
        resolve();
        return new Promise<void>((end) => (letGo = end));
      });
    }),
  letGo: (): void => letGo(),
};

declare global {
  interface Window {
    locked: typeof locked;
  }
}
window.locked = locked;
