import { wrap } from "comlink";
import type { CheckpointsApi } from "./checkpoints.worker.js";

const worker = new SharedWorker(new URL("./checkpoints.worker.ts", import.meta.url), { type: "module" });
const ready = new Promise<void>((resolve) =>
  worker.port.addEventListener("message", ({ data }) => data === "ready" && resolve(), { once: true }),
);
worker.port.start();
const api = wrap<CheckpointsApi>(worker.port);

const checkpoints: CheckpointsApi & { ready(): Promise<void> } = {
  ready: () => ready,
  fill: (...args) => api.fill(...args),
  query: (...args) => api.query(...args),
  save: (...args) => api.save(...args),
};

export type CheckpointsBench = typeof checkpoints;

Object.assign(globalThis, { checkpoints });
