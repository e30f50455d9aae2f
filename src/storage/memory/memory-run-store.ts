import { RunnerError } from "../../run/errors.js";
import type { RunStore } from "../run-store.js";
import { memoryDeletion } from "./deletion.js";
import { memoryDevices } from "./devices.js";
import type { MemoryData } from "./memory-data.js";
import { memoryMessagePages } from "./message-pages.js";
import { memoryReads } from "./reads.js";
import { memoryWaiting } from "./waiting.js";
import { memoryWrites } from "./writes.js";

export { emptyMemoryData, type MemoryData } from "./memory-data.js";

/**
 * The log in memory, over data that may outlive the store: several stores over the same data see the same log.
 *
 * Inputs, closings, messages, states and interrupts are copied on the way in and out; heads and rows on the way out.
 * Chunks are neither copied nor changed.
 */
export function memoryRunStore(data: MemoryData): RunStore {
  const parts: Omit<RunStore, "close" | "codec"> = {
    ...memoryWrites(data),
    ...memoryReads(data),
    ...memoryMessagePages(data),
    ...memoryDeletion(data),
    ...memoryWaiting(data),
    ...memoryDevices(data),
  };
  let closed = false;
  const close = async (): Promise<void> => {
    closed = true;
  };
  const whileOpen = Object.entries(parts).map(([name, work]: [string, (...args: never[]) => Promise<unknown>]) => [
    name,
    async (...args: never[]) => {
      if (closed) throw new RunnerError("closed");
      return work(...args);
    },
  ]);
  // Each function has the type of the one that it wraps.
  return { ...(Object.fromEntries(whileOpen) as typeof parts), close };
}
