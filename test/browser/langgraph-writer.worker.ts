import type { RunnableConfig } from "@langchain/core/runnables";
import { IndexedDBSaver } from "../../src/langgraph/indexeddb-saver.js";
import { checkpointOf, metadataOf, threadConfig } from "../unit/langgraph/checkpoints.js";

/** What the worker is ended in. */
const ACTS = {
  async put(saver: IndexedDBSaver, parent: RunnableConfig) {
    const checkpoint = checkpointOf({ step: 3, text: "three" }, 3);
    await saver.put(parent, checkpoint, metadataOf(3), checkpoint.channel_versions);
  },
  async putWrites(saver: IndexedDBSaver, parent: RunnableConfig) {
    await saver.putWrites(parent, [["step", 3], ["text", "three"]], "late"); // prettier-ignore
  },
  async deleteThread(saver: IndexedDBSaver) {
    await saver.deleteThread("t");
  },
};

export interface Order {
  readonly dbName: string;
  readonly act: keyof typeof ACTS;
  /** The worker stops for ever before its nth write or commit, or after its last commit. */
  readonly point: number;
}

/** Saves a thread, then does the act as far as it is told; says when it has got there, or `undefined` past the end. */
async function obey({ dbName, act, point }: Order): Promise<void> {
  const saver = new IndexedDBSaver({ dbName });
  let parent = threadConfig("t");
  for (const step of [1, 2]) {
    const checkpoint = checkpointOf({ step, text: "x".repeat(step) }, step);
    parent = await saver.put(parent, checkpoint, metadataOf(step), checkpoint.channel_versions);
    await saver.putWrites(parent, [["step", step]], "task");
  }
  let points = 0;
  const arrive = (): void => {
    if (++points !== point) return;
    postMessage(point);
    // Until it is ended.
    for (;;) continue;
  };
  const { put, delete: remove } = IDBObjectStore.prototype;
  const { commit } = IDBTransaction.prototype;
  IDBObjectStore.prototype.put = function (...record) {
    arrive();
    return put.apply(this, record);
  };
  IDBObjectStore.prototype.delete = function (query) {
    arrive();
    return remove.call(this, query);
  };
  IDBTransaction.prototype.commit = function () {
    arrive();
    commit.call(this);
    arrive();
  };
  await ACTS[act](saver, parent);
  postMessage(undefined);
}

onmessage = ({ data }: MessageEvent<Order>) => void obey(data);
