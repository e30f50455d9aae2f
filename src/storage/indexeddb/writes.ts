import { RunnerError } from "../../run/errors.js";
import type { Chunk, SettledStatus } from "../../run/types.js";
import type { PayloadCodec } from "../codec.js";
import type {
  BuildForeignEnd,
  Claim,
  ClaimRequest,
  ClaimResult,
  Derived,
  RunClosing,
  RunRow,
  Settlement,
  ThreadHead,
} from "../run-store.js";
import { checkChunk, checkHead, checkRun } from "./checks.js";
import type { Connection, WriteTransaction } from "./connection.js";
import type { ChunkRecord, MessageRecord, RunRecord, StateRecord } from "./schema.js";

const EPOCH = "epoch";

/** A failed request of a transaction is told by the transaction; unhandled it would be reported a second time. */
const quietly = (request: Promise<unknown>): void => void request.catch(() => undefined);

async function nextEpoch(tx: WriteTransaction): Promise<number> {
  const meta = tx.objectStore("meta");
  const epoch = (Number(await meta.get(EPOCH)) || 0) + 1;
  quietly(meta.put(epoch, EPOCH));
  return epoch;
}

const holds = (head: ThreadHead | undefined, held: Claim): head is ThreadHead =>
  head?.epoch === held.epoch && head.holder === held.holder && head.live?.runIndex === held.runIndex;

const fenced = (held: Claim, head: ThreadHead | undefined): RunnerError =>
  new RunnerError("fenced", {
    threadId: held.threadId,
    runId: held.runId,
    ...(head?.holder !== undefined && { holderId: head.holder }),
  });

/** The head after its run ended. */
function freed(head: ThreadHead): ThreadHead {
  const { live: _live, holder: _holder, stop: _stop, ...rest } = head;
  return rest;
}

export async function encodeChunk(codec: PayloadCodec, chunk: Chunk): Promise<ChunkRecord> {
  return { ...chunk, entries: await codec.encode(chunk.entries) };
}

export async function claim(connection: Connection, codec: PayloadCodec, request: ClaimRequest): Promise<ClaimResult> {
  const { threadId, runId, holder, startedAt } = request;
  const input = await codec.encode(request.input);
  return connection.write(["heads", "threads", "runs", "meta"], "strict", async (tx) => {
    const [headRecord, sameRecord, thread] = await Promise.all([
      tx.objectStore("heads").get(threadId),
      tx.objectStore("runs").index("runId").get([threadId, runId]),
      tx.objectStore("threads").get(threadId),
    ]);
    const head = checkHead(headRecord);
    const same = checkRun(sameRecord);
    if (same !== undefined) {
      // Ours, from a first try whose end was not heard: it stands.
      if (head?.live?.runId === runId && head.holder === holder && same.startedAt === startedAt) {
        return { is: "claimed", claim: { threadId, runId, runIndex: same.runIndex, epoch: same.epoch, holder } };
      }
      return { is: "exists", run: toRunRow(same) };
    }
    const moved = head?.activeRunIndex !== request.base?.activeRunIndex || head?.epoch !== request.base?.epoch;
    if (moved || head?.live !== undefined) return { is: "moved" };

    const epoch = await nextEpoch(tx);
    const runIndex = head?.runCount ?? 0;
    const branches = request.prevRunIndex !== (runIndex === 0 ? null : runIndex - 1);
    const run: RunRecord = {
      threadId,
      runIndex,
      runId,
      prevRunIndex: request.prevRunIndex,
      ...(request.parentRunId !== undefined && { parentRunId: request.parentRunId }),
      ...(request.agentId !== undefined && { agentId: request.agentId }),
      status: "running",
      epoch,
      startedAt,
      fingerprint: request.fingerprint,
      input,
    };
    quietly(tx.objectStore("runs").put(run));
    quietly(
      tx.objectStore("heads").put({
        ...(head ?? { threadId }),
        epoch,
        runCount: runIndex + 1,
        activeRunIndex: runIndex,
        live: { runIndex, runId },
        holder,
        ...(branches && { branched: true as const }),
      }),
    );
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
        runCount: runIndex + 1,
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
): Promise<{ stopRequested: boolean }> {
  const record = await encodeChunk(codec, chunk);
  return connection.write(["heads", "chunks"], "relaxed", async (tx) => {
    const reading = tx.objectStore("heads").get(held.threadId);
    quietly(tx.objectStore("chunks").put(record));
    const head = await reading;
    if (!holds(head, held)) throw fenced(held, head);
    return { stopRequested: head.stop?.runId === held.runId };
  });
}

async function encodeDerived(
  codec: PayloadCodec,
  threadId: string,
  runIndex: number,
  derived: Derived,
): Promise<{ messages: MessageRecord[]; state: StateRecord }> {
  const messages: MessageRecord[] = await Promise.all(
    derived.messages.map(async ({ message, after }, n) => ({
      threadId,
      runIndex,
      n,
      messageId: message.id,
      ...(after !== undefined && { after }),
      ...(derived.rewritten && n === 0 && { resets: 1 as const }),
      message: await codec.encode(message),
    })),
  );
  if (derived.rewritten && messages.length === 0) messages.push({ threadId, runIndex, n: 0, resets: 1 });
  const state: StateRecord = {
    threadId,
    runIndex,
    state: await codec.encode(derived.state),
    interrupts: await codec.encode(derived.interrupts),
  };
  return { messages, state };
}

function putDerived(tx: WriteTransaction, records: { messages: MessageRecord[]; state: StateRecord }): void {
  for (const record of records.messages) quietly(tx.objectStore("messages").put(record));
  quietly(tx.objectStore("states").put(records.state));
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
    const stopDecides = head.stop?.runId === held.runId && status !== "stopped" && !settlement.ownTerminal;
    if (stopDecides) return "stop-requested";
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
    const { underived, ...rest } = head;
    const left = underived.filter((index) => index !== runIndex);
    putDerived(tx, records);
    quietly(tx.objectStore("runs").put({ ...run, closing }));
    quietly(tx.objectStore("heads").put({ ...rest, ...(left.length > 0 && { underived: left }) }));
  });
}

export function requestStop(
  connection: Connection,
  threadId: string,
  runId: string | undefined,
  at: number,
): Promise<{ runId: string; runIndex: number; holder: string; first: boolean } | undefined> {
  return connection.write(["heads"], "strict", async (tx) => {
    const head = checkHead(await tx.objectStore("heads").get(threadId));
    if (head?.live === undefined || head.holder === undefined) return undefined;
    if (runId !== undefined && head.live.runId !== runId) return undefined;
    const first = head.stop?.runId !== head.live.runId;
    if (first) quietly(tx.objectStore("heads").put({ ...head, stop: { runId: head.live.runId, at } }));
    return { ...head.live, holder: head.holder, first };
  });
}

export function toRunRow(record: RunRecord): RunRow {
  const { input: _input, closing: _closing, ...row } = record;
  return row;
}
