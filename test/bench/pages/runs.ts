import { wrap } from "comlink";
import type { RunsApi } from "../runs/api.js";

export type IndexedDBRuns = RunsApi<"indexeddb">;

const worker = new SharedWorker(new URL("./runs.worker.ts", import.meta.url), { type: "module" });
const ready = new Promise<void>((resolve) =>
  worker.port.addEventListener("message", ({ data }) => data === "ready" && resolve(), { once: true }),
);
worker.port.start();
const api = wrap<IndexedDBRuns>(worker.port);

const runs: IndexedDBRuns & { ready(): Promise<void> } = {
  ready: () => ready,
  run: (...args) => api.run(...args),
  fill: (...args) => api.fill(...args),
  warm: (...args) => api.warm(...args),
  cold: (...args) => api.cold(...args),
};

export type RunsBench = typeof runs;

Object.assign(globalThis, { runs });
