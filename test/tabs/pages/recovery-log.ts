import { openDB } from "idb";

/** A tool began to work for a call. */
export interface Execution {
  readonly toolCallId: string;
  readonly name: string;
  readonly thread: string;
}

/** What tools did, kept beside the log: it survives every host, as what they did to the world does. */
export const executions = (worker: string) =>
  openDB<{ all: { key: number; value: Execution } }>(`${worker.split("#")[0]!}.executions`, 1, {
    upgrade: (db) => void db.createObjectStore("all", { autoIncrement: true }),
  });
