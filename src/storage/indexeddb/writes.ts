import { unwrap } from "idb";
import type { SettledStatus } from "../../run/types.js";
import { digestOf, type PayloadCodec } from "../codec.js";
import {
  askedAs,
  askToStop,
  claimedHead,
  claimedRun,
  claimedThread,
  decideClaim,
  endedRun,
  fenced,
  granted,
  holds,
  settledHead,
  stopDecides,
} from "../decisions.js";
import { changedCall } from "../pending-tool-calls.js";
import type { RunStore, StopRequest, ThreadHead } from "../run-store.js";
import { checkHead, checkRun, corrupt, isRun, isThread } from "./checks.js";
import { refuseEncrypted } from "./keyless.js";
import { newestOfId, rowsOfId, runOfId, runOfName } from "./reads.js";
import { quietly } from "./database-connection.js";
import {
  asGiven,
  bytesAfter,
  encodeChunk,
  encodeDerived,
  encodeTitle,
  newThread,
  nextEpoch,
  placeOfClosing,
  placeOfInput,
  placeOfResult,
  putDerived,
  runRange,
  formerId,
  storable,
  toRunRow,
  withKeys,
} from "./records.js";
import {
  KEYS,
  type ChunkRecord,
  type Connection,
  type RunRecord,
  type Stores,
  type WriteTransaction,
} from "./schema.js";
import { dropWaiting, putRecovery, takeTurn } from "./waiting-rows.js";

/** An invalid row is left as it is: it must not keep a run from its end (L7). */
export async function touchThread(
  tx: WriteTransaction,
  threadId: string,
  updatedAt: number,
  lastStatus: SettledStatus,
  run?: RunRecord,
  bytes = 0,
): Promise<void> {
  const thread = await tx.objectStore("threads").get(threadId);
  if (thread === undefined || !isThread(thread)) return;
  const listed = { updatedAt: Math.max(thread.updatedAt, updatedAt), lastStatus };
  quietly(tx.objectStore("threads").put({ ...thread, ...listed, bytes: bytesAfter(thread, run, bytes) }));
}

/** Writes that do nothing to waiting runs do not wait for those that do (L15). */
export const scopeOf = (stores: readonly Stores[], waiting: boolean): Stores[] =>
  waiting ? [...stores, "waiting"] : [...stores];

const isSameRequest = (one: StopRequest | undefined, other: StopRequest | undefined): boolean =>
  one?.runId === other?.runId && one?.at === other?.at && one?.as === other?.as;

export const indexedDBWrites = (
  connection: Connection,
  codec: PayloadCodec,
): Pick<RunStore, "claim" | "append" | "settle" | "requestStop" | "changeToolCall"> => ({
  claim: async (given) => {
    const { threadId, runId, listedAt = given.startedAt } = given;
    const fingerprint = await digestOf(codec, given.fingerprint);
    const request = { ...given, fingerprint };
    const input = await codec.encode(given.input, placeOfInput(request));
    const title = await encodeTitle(codec, threadId, given.title);
    const isWaiting = request.waiting === true;
    const inTurn = isWaiting || request.afterWaiting === true;
    return connection.write(scopeOf(["heads", "threads", "runs", "meta"], inTurn), "strict", async (tx) => {
      const runs = tx.objectStore("runs");
      const isOthers = given.device !== undefined;
      const [headRecord, sameRecord, newestRecord, threadRecord] = await Promise.all([
        tx.objectStore("heads").get(threadId),
        isOthers ? runOfName(tx, threadId, given) : runOfId(tx, threadId, runId, fingerprint, given.fingerprint),
        newestOfId(tx, threadId, runId),
        tx.objectStore("threads").get(threadId),
      ]);
      const head = checkHead(headRecord);
      // An invalid row is left as it is; it must not keep the thread from its next run (L7).
      const isSpoilt = threadRecord !== undefined && !isThread(threadRecord);
      const thread = isSpoilt ? undefined : threadRecord;
      const decision = decideClaim(head, rowsOfId(sameRecord, newestRecord), request);
      if (decision.is === "moved") return decision;
      if (decision.is === "exists") {
        if (isWaiting) await dropWaiting(tx, request);
        return { is: "exists", run: asGiven(toRunRow(decision.run), fingerprint, given.fingerprint) };
      }
      if (decision.is === "again") return granted(request, decision.run, thread?.bytes);

      const { runIndex, stale, former } = decision;
      const [, epoch, last, taken] = await Promise.all([
        refuseEncrypted(tx, codec, KEYS, [input, title]),
        nextEpoch(tx, head),
        head === undefined ? undefined : runs.get([threadId, head.activeRunIndex]),
        runs.getKey(runRange(threadId, runIndex, Infinity)),
      ]);
      // The thread has more runs than its head counts: this one would overwrite another.
      if (taken !== undefined) throw corrupt("heads", { threadId });
      const turn = inTurn ? await takeTurn(tx, request) : "first";
      if (turn !== "first") return { is: turn };
      // The unique index on the run id includes rows that are still to be swept.
      for (const run of stale) quietly(runs.delete([threadId, run.runIndex]));
      if (former !== undefined) quietly(runs.put({ ...storable(former), runId: formerId(former) }));
      // An unreadable run is named as no parent; it must not keep the thread from its next run (L7).
      const lastRunId = last !== undefined && isRun(last) ? toRunRow(last).runId : undefined;
      quietly(runs.put({ ...claimedRun(head, request, runIndex, epoch, lastRunId), input }));
      quietly(tx.objectStore("heads").put(claimedHead(head, request, runIndex, epoch)));
      const row = thread ?? newThread(threadId, listedAt);
      if (!isSpoilt) quietly(tx.objectStore("threads").put(claimedThread(row, { ...request, title })));
      return granted(request, { runIndex, epoch }, thread?.bytes);
    });
  },

  append: (held, chunk) => {
    const write = (record: ChunkRecord): ReturnType<RunStore["append"]> =>
      connection.write(["heads", "chunks"], "relaxed", async (tx) => {
        // Without a promise of its own: the transaction reports its failure.
        unwrap(tx.objectStore("chunks")).put(record);
        const head = checkHead(await tx.objectStore("heads").get(held.threadId));
        if (!holds(head, held)) throw fenced(held, head);
        const stop = askedAs(head);
        return stop === undefined ? {} : { stop };
      });
    // Where nothing is encoded, one promise less for each delta.
    return codec.isPlain === true ? write(chunk) : encodeChunk(codec, chunk).then(write);
  },

  settle: async (held, settlement) => {
    const { threadId, runIndex } = held;
    const { status, endedAt, listedAt = endedAt, bytes } = settlement;
    const chunk = await encodeChunk(codec, settlement.chunk);
    const closing = await codec.encode(settlement.closing, placeOfClosing(threadId, runIndex));
    const derived = await encodeDerived(codec, threadId, runIndex, settlement.derived);
    const { recovery } = settlement;
    const stores = scopeOf(["heads", "threads", "runs", "chunks", "messages", "states"], recovery !== undefined);
    return connection.write(stores, "strict", async (tx) => {
      const [headRecord, runRecord] = await Promise.all([
        tx.objectStore("heads").get(threadId),
        tx.objectStore("runs").get([threadId, runIndex]),
      ]);
      const head = checkHead(headRecord);
      const run = checkRun(runRecord);
      // This is a retry: the first try was committed.
      if (run?.epoch === held.epoch && run.status === status) return "settled";
      if (run === undefined || !holds(head, held)) throw fenced(held, head);
      if (stopDecides(head, settlement)) return "stop-requested";
      quietly(tx.objectStore("chunks").put(chunk));
      const ended = endedRun(storable(run), status, endedAt, settlement.chunk);
      quietly(tx.objectStore("runs").put({ ...ended, closing, bytes }));
      quietly(tx.objectStore("heads").put(settledHead(head, runIndex, settlement)));
      putDerived(tx, derived);
      if (recovery !== undefined) await putRecovery(tx, recovery);
      await touchThread(tx, threadId, listedAt, status, run, bytes);
      return "settled";
    });
  },

  requestStop: (threadId, runId, at, as = "stopped") => {
    let before: { readonly head: ThreadHead; readonly asked: Awaited<ReturnType<RunStore["requestStop"]>> } | undefined;
    return connection.write(["heads"], "strict", async (tx) => {
      const head = checkHead(await tx.objectStore("heads").get(threadId));
      const request = askToStop(head, runId, at, as);
      // This is a retry: the first try was committed.
      if (before !== undefined && isSameRequest(before.head.stop, head?.stop)) return before.asked;
      if (request?.head !== undefined) {
        quietly(tx.objectStore("heads").put(request.head));
        before = { head: request.head, asked: request.asked };
      }
      return request?.asked;
    });
  },

  changeToolCall: async (threadId, toolCallId, change, result) => {
    if (result === undefined) await codec.ready?.();
    const encoded = result && (await codec.encode(result, placeOfResult(threadId, toolCallId)));
    return connection.write(withKeys("heads"), "strict", async (tx) => {
      await refuseEncrypted(tx, codec, KEYS, [encoded]);
      const head = checkHead(await tx.objectStore("heads").get(threadId));
      const changed = changedCall(head, threadId, toolCallId, (call) => change(call, encoded));
      if (changed.head !== undefined) quietly(tx.objectStore("heads").put(changed.head));
      return changed.change.is;
    });
  },
});
