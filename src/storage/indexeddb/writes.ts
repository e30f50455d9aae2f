import { RunnerError } from "../../run/errors.js";
import type { Chunk, SettledStatus } from "../../run/types.js";
import type { PayloadCodec } from "../codec.js";
import {
  askedAs,
  askToStop,
  claimedHead,
  claimedRun,
  decideClaim,
  fenced,
  freed,
  holds,
  stopDecides,
  withoutUnderived,
} from "../decisions.js";
import type {
  BuildForeignEnd,
  Claim,
  ClaimRequest,
  ClaimResult,
  Derived,
  RunClosing,
  RunRow,
  RunStore,
  Settlement,
  StopRequest,
} from "../run-store.js";
import { checkChunk, checkHead, checkRun } from "./checks.js";
import type { Connection, WriteTransaction } from "./connection.js";
import { encodeChunk, encodeDerived, nextEpoch, putDerived, quietly, toRunRow } from "./records.js";
import type { RunRecord } from "./schema.js";

export async function claim(connection: Connection, codec: PayloadCodec, request: ClaimRequest): Promise<ClaimResult> {
  const { threadId, runId, holder, startedAt } = request;
  const input = await codec.encode(request.input);
  return connection.write(["heads", "threads", "runs", "meta"], "strict", async (tx) => {
    const runs = tx.objectStore("runs");
    const [headRecord, sameRecord, thread] = await Promise.all([
      tx.objectStore("heads").get(threadId),
      runs.index("runId").get([threadId, runId]),
      tx.objectStore("threads").get(threadId),
    ]);
    const head = checkHead(headRecord);
    const decision = decideClaim(head, checkRun(sameRecord), request);
    if (decision.is === "moved") return decision;
    if (decision.is === "exists") return { is: "exists", run: toRunRow(decision.run) };
    if (decision.is === "again") {
      const { runIndex, epoch } = decision.run;
      return { is: "claimed", claim: { threadId, runId, runIndex, epoch, holder } };
    }

    const { runIndex, stale } = decision;
    const [epoch, last] = await Promise.all([
      nextEpoch(tx),
      head === undefined ? undefined : runs.get([threadId, head.activeRunIndex]),
    ]);
    // A run id is unique in its thread, also beside rows that are still to be swept.
    if (stale !== undefined) quietly(runs.delete([threadId, stale.runIndex]));
    quietly(runs.put({ ...claimedRun(request, runIndex, epoch, checkRun(last)?.runId), input }));
    quietly(tx.objectStore("heads").put(claimedHead(head, request, runIndex, epoch)));
    quietly(
      tx.objectStore("threads").put({
        threadId,
        title: request.title,
        archived: 0,
        pinned: 0,
        createdAt: startedAt,
        eventCount: 0,
        ...thread,
        ...(thread?.title === "" && thread.named === undefined && { title: request.title }),
        ...(request.agentId !== undefined && { agentId: request.agentId }),
        updatedAt: startedAt,
        runCount: (thread?.runCount ?? 0) + 1,
      }),
    );
    return { is: "claimed", claim: { threadId, runId, runIndex, epoch, holder } };
  });
}

export async function append(
  connection: Connection,
  codec: PayloadCodec,
  held: Claim,
  chunk: Chunk,
): ReturnType<RunStore["append"]> {
  const record = await encodeChunk(codec, chunk);
  return connection.write(["heads", "chunks"], "relaxed", async (tx) => {
    const reading = tx.objectStore("heads").get(held.threadId);
    quietly(tx.objectStore("chunks").put(record));
    const head = await reading;
    if (!holds(head, held)) throw fenced(held, head);
    const stop = askedAs(head);
    return stop === undefined ? {} : { stop };
  });
}

async function touchThread(
  tx: WriteTransaction,
  threadId: string,
  updatedAt: number,
  lastStatus: SettledStatus,
  events: number,
): Promise<void> {
  const thread = await tx.objectStore("threads").get(threadId);
  if (thread === undefined) return;
  quietly(tx.objectStore("threads").put({ ...thread, updatedAt, lastStatus, eventCount: thread.eventCount + events }));
}

export async function settle(
  connection: Connection,
  codec: PayloadCodec,
  held: Claim,
  settlement: Settlement,
): Promise<"settled" | "stop-requested"> {
  const { threadId, runIndex } = held;
  const { status, endedAt } = settlement;
  const chunk = await encodeChunk(codec, settlement.chunk);
  const closing = await codec.encode(settlement.closing);
  const derived = await encodeDerived(codec, threadId, runIndex, settlement.derived);
  const eventCount = chunk.firstSeq + chunk.count;
  return connection.write(["heads", "threads", "runs", "chunks", "messages", "states"], "strict", async (tx) => {
    const [head, runRecord] = await Promise.all([
      tx.objectStore("heads").get(threadId),
      tx.objectStore("runs").get([threadId, runIndex]),
    ]);
    const run = checkRun(runRecord);
    // From a first try whose end was not heard.
    if (run?.epoch === held.epoch && run.status === status) return "settled";
    if (run === undefined || !holds(head, held)) throw fenced(held, head);
    if (stopDecides(head, settlement)) return "stop-requested";
    quietly(tx.objectStore("chunks").put(chunk));
    quietly(tx.objectStore("runs").put({ ...run, status, endedAt, eventCount, closing }));
    quietly(tx.objectStore("heads").put(freed(head)));
    putDerived(tx, derived);
    await touchThread(tx, threadId, endedAt, status, eventCount);
    return "settled";
  });
}

export async function settleForeign(
  connection: Connection,
  threadId: string,
  runId: string,
  status: SettledStatus,
  endedAt: number,
  build: BuildForeignEnd,
): Promise<RunRow | undefined> {
  return connection.write(["heads", "threads", "runs", "chunks", "meta"], "strict", async (tx) => {
    const head = checkHead(await tx.objectStore("heads").get(threadId));
    if (head?.live?.runId !== runId) return undefined;
    const { runIndex } = head.live;
    const [runRecord, cursor, epoch] = await Promise.all([
      tx.objectStore("runs").get([threadId, runIndex]),
      tx
        .objectStore("chunks")
        .openCursor(IDBKeyRange.bound([threadId, runIndex, 0], [threadId, runIndex, Infinity]), "prev"),
      nextEpoch(tx),
    ]);
    const run = checkRun(runRecord);
    if (run === undefined) throw new RunnerError("corrupt-record", { threadId, runId, store: "runs" });
    const last = cursor === null ? undefined : checkChunk(cursor.value);
    // What the end is made of stands outside of the payloads, so no codec is needed inside the transaction.
    const chunk = build(toRunRow(run), last === undefined ? 0 : last.firstSeq + last.count, last?.open);
    const ended: RunRecord = { ...run, status, epoch, endedAt, eventCount: chunk.firstSeq + chunk.count };
    quietly(tx.objectStore("chunks").put({ ...chunk, epoch }));
    quietly(tx.objectStore("runs").put(ended));
    quietly(tx.objectStore("heads").put({ ...freed(head), epoch, underived: [...(head.underived ?? []), runIndex] }));
    await touchThread(tx, threadId, endedAt, status, ended.eventCount ?? 0);
    return toRunRow(ended);
  });
}

export async function derive(
  connection: Connection,
  codec: PayloadCodec,
  threadId: string,
  runIndex: number,
  runClosing: RunClosing,
  derived: Derived,
): Promise<void> {
  const closing = await codec.encode(runClosing);
  const records = await encodeDerived(codec, threadId, runIndex, derived);
  await connection.write(["heads", "runs", "messages", "states"], "relaxed", async (tx) => {
    const [head, run] = await Promise.all([
      tx.objectStore("heads").get(threadId),
      tx.objectStore("runs").get([threadId, runIndex]),
    ]);
    if (run === undefined || head?.underived?.includes(runIndex) !== true) return;
    putDerived(tx, records);
    quietly(tx.objectStore("runs").put({ ...run, closing }));
    quietly(tx.objectStore("heads").put(withoutUnderived(head, (other) => other === runIndex)));
  });
}

export function requestStop(
  connection: Connection,
  threadId: string,
  runId: string | undefined,
  at: number,
  as: StopRequest["as"] = "stopped",
): ReturnType<RunStore["requestStop"]> {
  return connection.write(["heads"], "strict", async (tx) => {
    const request = askToStop(checkHead(await tx.objectStore("heads").get(threadId)), runId, at, as);
    if (request?.head !== undefined) quietly(tx.objectStore("heads").put(request.head));
    return request?.asked;
  });
}
