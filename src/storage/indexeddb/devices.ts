import { RunnerError } from "../../run/errors.js";
import type { Chunk } from "../../run/types.js";
import { joinChunks } from "../../run/pack.js";
import { digestOf, type PayloadCodec } from "../codec.js";
import { firstOf } from "../decisions.js";
import {
  activatedHead,
  activatesNew,
  decidePlace,
  eventsIn,
  isOnPathTo,
  mayActivate,
  mayReopen,
  placedHead,
  placedRun,
  placedThread,
  rebasedRun,
  reopenedHead,
  reopenedRun,
  replacedHead,
  replacedRun,
  type PlaceBase,
  type PlaceDecision,
} from "../device-decisions.js";
import type { DeviceStore, PlacedRun } from "../devices.js";
import { joinGroups } from "../repacking.js";
import type { Claim, RunRow, ThreadHead } from "../run-store.js";
import { checkHead, checkRun, corrupt, isChunk, isIndex, isRun, isThread } from "./checks.js";
import { quietly } from "./database-connection.js";
import { hasKeys, refuseEncrypted } from "./keyless.js";
import { newestOfId, readRunsFrom, rowsOfId, runOfName } from "./reads.js";
import {
  asGiven,
  bytesAfter,
  chunksFrom,
  encodeChunk,
  encodeDerived,
  encodeTitle,
  formerId,
  newThread,
  nextEpoch,
  placeOfClosing,
  placeOfInput,
  putDerived,
  runRange,
  storable,
  toRunRow,
} from "./records.js";
import {
  EPOCH,
  KEYS,
  type ChunkRecord,
  type Connection,
  type ReadTransaction,
  type RunRecord,
  type ThreadRecord,
  type WriteTransaction,
} from "./schema.js";

const ALL = ["heads", "threads", "runs", "chunks", "messages", "states", "meta"] as const;

/** Runs of other devices. Loaded when it is first used: most hosts never hear of another device. */
export const indexedDBDevices = (connection: Connection, codec: PayloadCodec): DeviceStore => ({
  runNamed: async (threadId, name) => {
    const [head, record] = await connection.read(["heads", "runs"], (tx) =>
      Promise.all([tx.objectStore("heads").get(threadId), runOfName(tx, threadId, name)]),
    );
    const run = checkRun(record);
    return run !== undefined && run.runIndex >= firstOf(checkHead(head)) ? toRunRow(run) : undefined;
  },

  reopen: (threadId, runIndex, holder) => {
    let reopened: Claim | undefined;
    return connection.write([...ALL], "strict", async (tx) => {
      const runs = tx.objectStore("runs");
      const head = checkHead(await tx.objectStore("heads").get(threadId));
      // This is a retry: the first try was committed.
      if (reopened !== undefined && head?.epoch === reopened.epoch && head.holder === holder) return reopened;
      if (head === undefined || head.deleted === true) return undefined;
      const run = checkRun(await runs.get([threadId, head.activeRunIndex]));
      if (!mayReopen(head, run) || run.runIndex !== runIndex) return undefined;
      if (!(await endsBefore(tx, run, run.closedFrom))) return undefined;
      const [, epoch] = await Promise.all([refuseEncrypted(tx, codec, KEYS), nextEpoch(tx, head)]);
      const { runId } = toRunRow(run);
      const { closing: _closing, ...row } = storable(reopenedRun(run, epoch));
      quietly(tx.objectStore("chunks").delete(chunksFrom(run, run.closedFrom)));
      deleteDerived(tx, threadId, runIndex);
      quietly(runs.put(row));
      quietly(tx.objectStore("heads").put(reopenedHead(head, toRunRow(run), epoch, holder)));
      reopened = { threadId, runIndex, runId, epoch, holder };
      return reopened;
    });
  },

  placeRun: async (given) => {
    eventsIn(given);
    const fingerprint = await digestOf(codec, given.fingerprint);
    const placed: PlacedRun = { ...given, fingerprint };
    let epoch: number | undefined;
    for (;;) {
      const written = await placeOnce(connection, codec, placed, given.fingerprint, epoch);
      if (written !== undefined && "again" in written) {
        epoch = written.again;
        continue;
      }
      return written && asGiven(written, fingerprint, given.fingerprint);
    }
  },

  activate: async (threadId, runIndex, epoch) => {
    await codec.ready?.();
    return connection.write(["heads", "runs", "meta"], "strict", async (tx) => {
      const [headRecord, run] = await Promise.all([
        tx.objectStore("heads").get(threadId),
        tx.objectStore("runs").get([threadId, runIndex]),
        refuseEncrypted(tx, codec, KEYS),
      ]);
      const head = checkHead(headRecord);
      if (!mayActivate(head, checkRun(run))) return false;
      // Also where this is a retry.
      if (head.activeRunIndex === runIndex) return true;
      if (head.epoch !== (epoch ?? head.epoch)) return false;
      quietly(tx.objectStore("heads").put(activatedHead(head, runIndex, await nextEpoch(tx, head))));
      return true;
    });
  },
});

/** Whether some record of the run ends just before event `seq`, so that those from there on can be deleted. */
async function endsBefore(tx: WriteTransaction, { threadId, runIndex }: RunRecord, seq: number): Promise<boolean> {
  if (seq === 0) return true;
  const before = IDBKeyRange.bound([threadId, runIndex, 0], [threadId, runIndex, seq], false, true);
  const last = (await tx.objectStore("chunks").openCursor(before, "prev"))?.value;
  return last !== undefined && isChunk(last) && last.firstSeq + last.count === seq;
}

function deleteDerived(tx: WriteTransaction, threadId: string, runIndex: number): void {
  quietly(tx.objectStore("messages").delete(runRange(threadId, runIndex, runIndex + 1)));
  quietly(tx.objectStore("states").delete([threadId, runIndex]));
}

/** @param given the fingerprint: a run may still be stored with it */
async function readBase(
  tx: ReadTransaction | WriteTransaction,
  placed: PlacedRun,
  given: string,
): Promise<PlaceBase<RunRecord>> {
  const { threadId, runId, fingerprint, prevRunIndex } = placed;
  const [head, same, newest, prev] = await Promise.all([
    tx.objectStore("heads").get(threadId),
    runOfName(tx, threadId, placed),
    newestOfId(tx, threadId, runId),
    prevRunIndex === null ? undefined : tx.objectStore("runs").get([threadId, prevRunIndex]),
  ]);
  const its = same?.fingerprint === given ? { ...same, fingerprint } : same;
  return { head: checkHead(head), ...rowsOfId(its, newest), prev: checkRun(prev) };
}

type Placing = Exclude<PlaceDecision<RunRecord>, { readonly is: "blocked" | "there" }>;

const indexOf = (placing: Placing): number => (placing.is === "new" ? placing.runIndex : placing.run.runIndex);

/**
 * Payloads are encoded for the run's index and epoch before the transaction that writes them. Where the thread changes
 * meanwhile, or another write draws the epoch, this must be done again.
 *
 * @param reserved an epoch that was drawn by the try before: claims of other threads then do not make another one necessary
 * @returns `again`: an epoch for the next try
 */
async function placeOnce(
  connection: Connection,
  codec: PayloadCodec,
  placed: PlacedRun,
  given: string,
  reserved: number | undefined,
): Promise<RunRow | undefined | { readonly again: number }> {
  const { threadId } = placed;
  // Without the key the run is not recognized: it would pass for another one of its id.
  if (codec.isPlain === true && (await hasKeys(connection, KEYS))) throw new RunnerError("locked");
  const [before, counter] = await connection.read(["heads", "runs", "meta"], (tx) =>
    Promise.all([readBase(tx, placed, given), tx.objectStore("meta").get(EPOCH)]),
  );
  const planned = decidePlace(before, placed);
  if (planned.is === "blocked") return undefined;
  if (planned.is === "there") return toRunRow(planned.run);
  const { head } = before;
  const isOnPath = planned.is === "replaces" && (await isOnActivePath(connection, head, planned.run));
  // The live run began on what would be replaced.
  if (isOnPath && head?.live !== undefined) return undefined;
  const epoch = reserved ?? (isIndex(counter) ? counter : 0) + 1;
  const runIndex = indexOf(planned);
  const records = await encodeRun(codec, placed, runIndex, epoch);
  const { derived } = records;
  const payloads = [records, ...records.chunks, ...derived.messages, derived.state];

  return connection.write([...ALL], "strict", async (tx) => {
    const runs = tx.objectStore("runs");
    const [now, thread, active, taken] = await Promise.all([
      readBase(tx, placed, given),
      tx.objectStore("threads").get(threadId),
      head === undefined || head.deleted === true ? undefined : runs.get([threadId, head.activeRunIndex]),
      runs.getKey(runRange(threadId, head?.runCount ?? 0, Infinity)),
      refuseEncrypted(tx, codec, KEYS, payloads),
    ]);
    const decision = decidePlace(now, placed);
    if (decision.is === "blocked") return undefined;
    // Also where this is a retry: the first try was committed.
    if (decision.is === "there") return toRunRow(decision.run);
    const isNewest = epoch > (active?.epoch ?? 0) && epoch > (now.head?.epoch ?? 0);
    const drawn = reserved !== undefined && isNewest ? reserved : await nextEpoch(tx, now.head);
    // Which runs are on the active path changes with the epoch of the head only.
    const isAsPlanned = decision.is === planned.is && indexOf(decision) === runIndex && now.head?.epoch === head?.epoch;
    if (drawn !== epoch || !isNewest || !isAsPlanned) return { again: drawn };
    const { input, closing } = records;
    const { bytes } = placed;
    let row: RunRecord;
    if (decision.is === "new") {
      // The thread has more runs than its head counts: this one would overwrite another.
      if (taken !== undefined) throw corrupt("heads", { threadId });
      const { stale, former, takesId } = decision;
      // As in a claim: the unique index on the run id includes rows that are still to be swept.
      for (const run of stale) quietly(runs.delete([threadId, run.runIndex]));
      if (former !== undefined) quietly(runs.put({ ...storable(former), runId: formerId(former) }));
      row = { ...placedRun(now.head, placed, runIndex, epoch), input, closing, bytes };
      if (!takesId) row.runId = formerId(row);
      quietly(tx.objectStore("heads").put(placedHead(now.head, placed, runIndex, epoch)));
    } else {
      const { run } = decision;
      row = { ...replacedRun(run, placed, epoch), input, closing, bytes };
      quietly(tx.objectStore("chunks").delete(chunksFrom(run, 0)));
      deleteDerived(tx, threadId, runIndex);
      if (isOnPath && active !== undefined && isRun(active) && active.runIndex !== runIndex) {
        quietly(runs.put(storable(rebasedRun(active, epoch))));
      }
      quietly(tx.objectStore("heads").put(replacedHead(now.head!, run, placed, epoch, isOnPath)));
    }
    quietly(runs.put(row));
    for (const chunk of records.chunks) quietly(tx.objectStore("chunks").put(chunk));
    putDerived(tx, records.derived);
    touch(tx, thread, decision.is === "new" ? undefined : decision.run, placed, records.title, now.head);
    return toRunRow(row);
  });
}

async function isOnActivePath(
  connection: Connection,
  head: ThreadHead | undefined,
  { threadId, runIndex }: RunRecord,
): Promise<boolean> {
  if (head === undefined || runIndex > head.activeRunIndex) return false;
  if (head.branched !== true || runIndex === head.activeRunIndex) return true;
  // Runs change with the epoch only: if it is the same in the write, these are still all of them.
  const rows = await readRunsFrom(connection, threadId, Math.max(runIndex, firstOf(head)));
  const prev = new Map(rows.map((row) => [row.runIndex, row.prevRunIndex]));
  return isOnPathTo(head.activeRunIndex, runIndex, (at) => prev.get(at));
}

interface EncodedRun {
  readonly input: unknown;
  readonly title: string | Uint8Array;
  readonly chunks: readonly ChunkRecord[];
  readonly closing: unknown;
  readonly derived: Awaited<ReturnType<typeof encodeDerived>>;
}

/** As few records as a run that has ended is packed into. `closedFrom`: what is taken back when it goes on begins a record. */
function joined(chunks: readonly Chunk[], closedFrom = Infinity): readonly Chunk[] {
  const before = chunks.filter(({ firstSeq }) => firstSeq < closedFrom);
  return [before, chunks.slice(before.length)].flatMap((part) => joinGroups(part).map(joinChunks));
}

async function encodeRun(codec: PayloadCodec, placed: PlacedRun, runIndex: number, epoch: number): Promise<EncodedRun> {
  const { threadId } = placed;
  const here = placed.chunks.map((chunk): Chunk => ({ ...chunk, threadId, runIndex, epoch }));
  const [input, title, chunks, closing, derived] = await Promise.all([
    codec.encode(placed.input, placeOfInput(placed)),
    encodeTitle(codec, threadId, placed.title),
    Promise.all(joined(here, placed.closedFrom).map((chunk) => encodeChunk(codec, chunk))),
    codec.encode(placed.closing, placeOfClosing(threadId, runIndex)),
    encodeDerived(codec, threadId, runIndex, placed.derived),
  ]);
  return { input, title, chunks, closing, derived };
}

/** Writes the thread's row. An invalid one is left as it is. @param replaced the run as it was, where it was there */
function touch(
  tx: WriteTransaction,
  thread: ThreadRecord | undefined,
  replaced: RunRecord | undefined,
  placed: PlacedRun,
  title: string | Uint8Array,
  head: ThreadHead | undefined,
): void {
  if (thread !== undefined && !isThread(thread)) return;
  const { threadId, startedAt, endedAt, listedAt = endedAt, bytes } = placed;
  const row = thread ?? newThread(threadId, Math.min(startedAt, listedAt), listedAt);
  const isNew = replaced === undefined;
  const isEnd = isNew ? activatesNew(head, placed) : placed.activates || replaced.runIndex === head?.activeRunIndex;
  const listed = placedThread(row, placed, title, { isNew, isEnd });
  quietly(tx.objectStore("threads").put({ ...listed, bytes: bytesAfter(row, replaced, bytes) }));
}
