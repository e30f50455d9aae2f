import type { Checkpoint, CheckpointTuple } from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import { openDB, type IDBPDatabase } from "idb";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { IndexedDBSaver, type IndexedDBSaverOptions } from "../../../src/langgraph/indexeddb-saver.js";
import type { SaverSchema, StoredValue } from "../../../src/langgraph/schema.js";
import { langGraphDbName } from "../../../src/platform/names.js";
import { metadataOf } from "./checkpoints.js";

export * from "./checkpoints.js";

export const freshName = (): string => `saver-${crypto.randomUUID()}`;

let usual: IndexedDBSaverOptions = {};

/** All savers that tests of the suite around it open have these options, too. */
export function openWith(options: IndexedDBSaverOptions): void {
  beforeAll(() => void (usual = options));
  afterAll(() => void (usual = {}));
}

/** The bytes that are stored of a value. */
export const storedBytes = (stored: StoredValue | undefined): Uint8Array | undefined =>
  stored instanceof Uint8Array ? stored : stored?.data;

/** How many bytes more are stored of an encrypted value. */
export const sealLength = (): number => (usual.encryption === undefined ? 0 : 60);

/** A saver that is closed, and its database deleted, when the test ends. */
export function opened(dbName = freshName(), options: IndexedDBSaverOptions = {}): IndexedDBSaver {
  const saver = new IndexedDBSaver({ ...usual, ...options, dbName });
  onTestFinished(async () => {
    await saver.close();
    indexedDB.deleteDatabase(langGraphDbName(dbName));
  });
  return saver;
}

/** What the saver of this name has stored, for whoever looks below it. */
export async function rawOf(dbName: string): Promise<IDBPDatabase<SaverSchema>> {
  const db = await openDB<SaverSchema>(langGraphDbName(dbName));
  onTestFinished(() => db.close());
  return db;
}

export async function countsOf(dbName: string): Promise<Record<"checkpoints" | "values" | "writes", number>> {
  const db = await rawOf(dbName);
  return {
    checkpoints: await db.count("checkpoints"),
    values: await db.count("values"),
    writes: await db.count("writes"),
  };
}

/** Saves a checkpoint with new values for all its channels. */
export function put(
  saver: IndexedDBSaver,
  parent: RunnableConfig,
  checkpoint: Checkpoint,
  step = 0,
): Promise<RunnableConfig> {
  return saver.put(parent, checkpoint, metadataOf(step), checkpoint.channel_versions);
}

export async function listOf(tuples: AsyncIterable<CheckpointTuple>): Promise<CheckpointTuple[]> {
  const all: CheckpointTuple[] = [];
  for await (const tuple of tuples) all.push(tuple);
  return all;
}

export const valuesOf = (tuple: CheckpointTuple | undefined): Record<string, unknown> | undefined =>
  tuple?.checkpoint.channel_values;
