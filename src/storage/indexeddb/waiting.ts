import { RunnerError } from "../../run/errors.js";
import { readable } from "../../run/readable.js";
import { digestOf, isNotOfRecord, type PayloadCodec } from "../codec.js";
import { isInLog } from "../decisions.js";
import { type WaitingRow, type WaitingStore } from "../waiting.js";
import { placeOfMove, positionAtEnd, updatedWaiting, type Placed } from "../waiting-order.js";
import { checkHead, checkRun, corrupt, isAbsentOr, isAttempt, isIndex, isRecord, isRun, isText } from "./checks.js";
import { quietly } from "./database-connection.js";
import { refuseEncrypted } from "./keyless.js";
import { decodeFailure, encodeFailure } from "./waiting-failure.js";
import { runOfId } from "./reads.js";
import { placeOfRequest, storable, toRunRow, withKeys } from "./records.js";
import { KEYS, type Connection, type Stores, type WaitingRecord, type WriteTransaction } from "./schema.js";
import { waitingRange } from "./waiting-rows.js";

const isFailure = (error: unknown): boolean => isRecord(error) && isText(error["code"]) && "message" in error;

/** Everything but its payloads. */
const isWaiting = (record: WaitingRecord): boolean =>
  isRecord(record) &&
  isText(record.threadId) &&
  Number.isFinite(record.position) &&
  isText(record.runId) &&
  isText(record.agentId) &&
  Number.isFinite(record.since) &&
  isAbsentOr(Number.isFinite, record.notBefore) &&
  isAbsentOr(isAttempt, record.attempt) &&
  isAbsentOr(isFailure, record.error) &&
  (record.kind === "run" || (record.kind === "recovery" && isText(record.of) && isIndex(record.ofIndex)));

/** The outbox. Loaded when it is first used: most hosts never have a waiting run. */
export const indexedDBWaiting = (
  connection: Connection,
  codec: PayloadCodec,
): Omit<WaitingStore, "waitingThreads" | "clearWaiting"> => ({
  addWaiting: async (run, most, given) => {
    const { threadId, runId } = run;
    const answer = given === undefined ? given : await digestOf(codec, given);
    const request = await codec.encode(run.request, placeOfRequest(threadId, runId));
    let added: number | undefined;
    return connection.write(withKeys("heads", "runs", "waiting"), "strict", async (tx) => {
      await refuseEncrypted(tx, codec, KEYS, [request]);
      const store = tx.objectStore("waiting");
      const [head, same, there, count, last] = await Promise.all([
        tx.objectStore("heads").get(threadId),
        runOfId(tx, threadId, runId, answer, given),
        store.index("runId").getKey([threadId, runId]),
        store.count(waitingRange(threadId)),
        store.openKeyCursor(waitingRange(threadId), "prev"),
      ]);
      // This is a retry: the first try was committed.
      if (there !== undefined) return { is: added === there[1] ? "added" : "waits" };
      if (isInLog(checkHead(head), checkRun(same), answer)) return { is: "exists" };
      if (count >= most) return { is: "full" };
      added = positionAtEnd(last?.primaryKey[1]);
      quietly(store.put({ ...run, request, position: added }));
      return { is: "added" };
    });
  },

  waitingRuns: async (threadId, limit) => {
    const range = waitingRange(threadId);
    const records = await connection.read(["waiting"], async (tx) => {
      const store = tx.objectStore("waiting");
      const found = await store.getAll(range, limit);
      if (found.every(isRecord)) return found;
      // Chromium reads one as null that is nested too deeply: the index still has its id.
      const index = tx.objectStore("waiting").index("runId");
      const ids = new Map<number, string>();
      for (let at = await index.openKeyCursor(idsOf(threadId)); at !== null; at = await at.continue()) {
        ids.set(at.primaryKey[1], at.key[1]);
      }
      const keys = await store.getAllKeys(range, limit);
      return found.map((record, n) => record ?? unreadable(threadId, keys[n]?.[1], ids.get(keys[n]?.[1] ?? NaN)));
    });
    const rows = await Promise.all(records.map((record) => toRow(codec, record)));
    return rows.filter((row) => row !== undefined);
  },

  isWaiting: (threadId, runId) =>
    connection.read(
      ["waiting"],
      async (tx) => (await tx.objectStore("waiting").index("runId").getKey([threadId, runId])) !== undefined,
    ),

  moveWaiting: async (threadId, runId, before) => {
    // Whoever is not given the order must not have changed it.
    await codec.ready?.();
    return connection.write(withKeys("waiting"), "strict", async (tx) => {
      await refuseEncrypted(tx, codec, KEYS);
      const store = tx.objectStore("waiting");
      const order = await orderOf(tx, threadId);
      const place = placeOfMove(order, runId, before);
      if (place === undefined) return false;
      if (place.is === "there") return true;
      const records = await store.getAll(waitingRange(threadId));
      const moved = records.find((record) => isRecord(record) && record.runId === runId);
      if (moved === undefined) throw corrupt("waiting", { threadId });
      if (place.is === "to") {
        quietly(store.delete([threadId, moved.position]));
        quietly(store.put({ ...moved, position: place.position }));
        return true;
      }
      // Ids whose record cannot be read stay in front.
      const others = records.filter((record) => isRecord(record) && record !== moved);
      const at = before === null ? others.length : others.findIndex((record) => record.runId === before);
      others.splice(at, 0, moved);
      for (const { position } of others) quietly(store.delete([threadId, position]));
      const first = positionAtEnd(order.at(-1)?.position);
      others.forEach((record, n) => quietly(store.put({ ...record, position: first + n })));
      return true;
    });
  },

  removeWaiting: (threadId, runId) => {
    let removed = false;
    return connection.write(["waiting"], "strict", async (tx) => {
      const store = tx.objectStore("waiting");
      const key = await store.index("runId").getKey([threadId, runId]);
      if (key === undefined) return removed;
      removed = true;
      quietly(store.delete(key));
      return true;
    });
  },

  endRecovery: ({ threadId, runId, of, ofIndex }, note) => {
    let ended = false;
    return connection.write(["runs", "waiting"], "strict", async (tx) => {
      const [key, run] = await Promise.all([
        tx.objectStore("waiting").index("runId").getKey([threadId, runId]),
        tx.objectStore("runs").get([threadId, ofIndex]),
      ]);
      // This may be a retry whose first try was committed.
      if (key === undefined) return ended;
      ended = true;
      quietly(tx.objectStore("waiting").delete(key));
      const isIt = run !== undefined && isRun(run) && toRunRow(run).runId === of;
      if (isIt && note !== undefined) quietly(tx.objectStore("runs").put({ ...storable(run), recovery: note }));
      return true;
    });
  },

  updateWaiting: async (threadId, runId, { error, ...update }) => {
    const failure = error && (await encodeFailure(codec, { threadId, runId }, error));
    const stores: Stores[] = failure ? withKeys("waiting") : ["waiting"];
    return connection.write(stores, "strict", async (tx) => {
      if (failure) await refuseEncrypted(tx, codec, KEYS, [failure]);
      const store = tx.objectStore("waiting");
      const record = await store.index("runId").get([threadId, runId]);
      if (record === undefined) return false;
      // What cannot be read is left as it is.
      const after = { ...update, ...(failure !== undefined && { error: failure }) };
      if (isWaiting(record)) quietly(store.put(updatedWaiting(record, after)));
      return true;
    });
  },
});

/** The keys of a thread in the index of run ids. */
const idsOf = (threadId: string): IDBKeyRange => IDBKeyRange.bound([threadId], [threadId, []]);

/** The thread's waiting runs in order, from keys alone. */
async function orderOf(tx: WriteTransaction, threadId: string): Promise<readonly Placed[]> {
  const placed: Placed[] = [];
  const index = tx.objectStore("waiting").index("runId");
  for (let at = await index.openKeyCursor(idsOf(threadId)); at !== null; at = await at.continue()) {
    placed.push({ runId: at.key[1], position: at.primaryKey[1] });
  }
  return placed.sort((a, b) => a.position - b.position);
}

/** What is shown of a record that cannot be read: it can be cancelled. */
const unreadable = (threadId: string, position: unknown, runId: unknown): WaitingRow | undefined => {
  if (!isText(runId) || typeof position !== "number") return undefined;
  const { code, message } = corrupt("waiting", { threadId });
  const none = { agentId: "", since: 0, kind: "run", request: undefined } as const;
  return { ...none, threadId, position, runId, error: { code, message } };
};

async function toRow(codec: PayloadCodec, record: WaitingRecord | undefined): Promise<WaitingRow | undefined> {
  if (record === undefined) return undefined;
  if (!isWaiting(record)) return unreadable(record.threadId, record.position, record.runId);
  const { error: failure, ...rest } = record;
  try {
    const row = { ...rest, ...(failure !== undefined && { error: await decodeFailure(codec, record, failure) }) };
    if (row.kind === "recovery") return row;
    return {
      ...row,
      request: readable(await codec.decode(row.request, placeOfRequest(row.threadId, row.runId))),
    };
  } catch (cause) {
    // Without the key nothing is shown; with it, the request may be in order.
    if (isNotOfRecord(cause)) throw cause;
    const { code, message } = new RunnerError("corrupt-record", { threadId: record.threadId }, { cause });
    return { ...rest, ...(rest.kind === "run" && { request: undefined }), error: { code, message } };
  }
}
