import type { Checkpoint, CheckpointTuple } from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import { openDB, type IDBPDatabase } from "idb";
import { onTestFinished } from "vitest";
import { IndexedDBSaver, type IndexedDBSaverOptions } from "../../../src/langgraph/indexeddb-saver.js";
import type { SaverSchema, Stores } from "../../../src/langgraph/schema.js";
import { langGraphDbName } from "../../../src/platform/names.js";
import { metadataOf } from "./checkpoints.js";

export * from "./checkpoints.js";

export const freshName = (): string => `saver-${crypto.randomUUID()}`;

/** A saver that is closed, and its database deleted, when the test ends. */
export function opened(dbName = freshName(), options: IndexedDBSaverOptions = {}): IndexedDBSaver {
  const saver = new IndexedDBSaver({ ...options, dbName });
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

export async function countsOf(dbName: string): Promise<Record<Stores, number>> {
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
