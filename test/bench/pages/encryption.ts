import { wrap } from "comlink";
import type { EncryptionApi } from "./encryption.worker.js";

const worker = new SharedWorker(new URL("./encryption.worker.ts", import.meta.url), { type: "module" });
const ready = new Promise<void>((resolve) =>
  worker.port.addEventListener("message", ({ data }) => data === "ready" && resolve(), { once: true }),
);
worker.port.start();
const api = wrap<EncryptionApi>(worker.port);

const encryption: EncryptionApi & { ready(): Promise<void> } = {
  ready: () => ready,
  appends: (...args) => api.appends(...args),
  reads: (...args) => api.reads(...args),
  settles: (...args) => api.settles(...args),
};

export type EncryptionBench = typeof encryption;

Object.assign(globalThis, { encryption });
