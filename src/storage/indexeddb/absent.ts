import { defined } from "../../platform/defined.js";
import { sameValue } from "../../run/same-value.js";
import type { PayloadCodec } from "../codec.js";
import type { AbsentThread, DeviceStore } from "../devices.js";
import { mayDelete } from "../deletion-decisions.js";
import { checkHead, isHead, isThread } from "./checks.js";
import { quietly } from "./database-connection.js";
import { hide } from "./deletion.js";
import { sweepThread } from "./garbage.js";
import { refuseEncrypted } from "./keyless.js";
import { decodeTitle } from "./payloads.js";
import { encodeTitle, nextEpoch, withKeys } from "./records.js";
import { KEYS, type Connection, type ThreadRecord, type WriteTransaction } from "./schema.js";
import { anyWaits } from "./waiting-rows.js";

/** Threads that are in the list, though their runs are not here: a row without a head, or with a tombstone. */
export const indexedDBAbsent = (
  connection: Connection,
  codec: PayloadCodec,
): Required<Pick<DeviceStore, "listAbsent" | "leave" | "absent" | "arrived">> => ({
  listAbsent: async (threads) => {
    const rows = await Promise.all(threads.map((thread) => rowOf(codec, thread)));
    await connection.write(withKeys("heads", "threads"), "strict", async (tx) => {
      await refuseEncrypted(tx, codec, KEYS, rows);
      await Promise.all(
        rows.map(async (row) => {
          const { before, isHere } = await standing(tx, row.threadId);
          const isFree = before === undefined ? !isHere : isThread(before) && before.absent === 1;
          if (!isFree) return;
          // Some of its runs may have come.
          const { runCount = 0 } = before ?? {};
          quietly(tx.objectStore("threads").put({ ...before, ...row, runCount }));
        }),
      );
    });
  },

  leave: async (before, thread, mayLeave) => {
    const { threadId } = thread;
    const listed = await connection.read(["threads"], (tx) => tx.objectStore("threads").get(threadId));
    if (listed === undefined || !(await isListedAs(codec, listed, thread))) return false;
    const row = await rowOf(codec, thread);
    let epoch: number | undefined;
    const hasLeft = await connection.write(withKeys("heads", "threads", "waiting"), "strict", async (tx) => {
      await refuseEncrypted(tx, codec, KEYS, [row]);
      const [head, waits, now] = await Promise.all([
        tx.objectStore("heads").get(threadId).then(checkHead),
        anyWaits(tx, threadId),
        tx.objectStore("threads").get(threadId),
      ]);
      // This is a retry: the first try was committed.
      if (head?.deleted === true && head.epoch === epoch) return true;
      // A run placed beside the path does not change the epoch.
      const isSame = mayDelete(head, before) && head.epoch === before.epoch && head.runCount === before.runCount;
      if (waits || !isSame || !sameValue(now, listed)) return false;
      epoch = await nextEpoch(tx, head);
      if (!mayLeave()) return false;
      quietly(tx.objectStore("threads").put(row));
      hide(tx, head, epoch);
      return true;
    });
    if (hasLeft) await sweepThread(connection, threadId);
    return hasLeft;
  },

  absent: () =>
    connection.read(["threads"], async (tx) => {
      const rows = await tx.objectStore("threads").getAll();
      const absent = rows.filter((row) => isThread(row) && row.absent === 1);
      return absent.toSorted((one, other) => other.updatedAt - one.updatedAt).map(({ threadId }) => threadId);
    }),

  arrived: async (threadId, listed) => {
    const { title: text, archived, pinned } = listed ?? {};
    const title = text === undefined ? undefined : await encodeTitle(codec, threadId, text);
    await connection.write(withKeys("heads", "threads"), "relaxed", async (tx) => {
      await refuseEncrypted(tx, codec, KEYS, [title]);
      const { before, isHere } = await standing(tx, threadId);
      if (before === undefined || !isThread(before) || before.absent !== 1) return;
      const { absent: _absent, ...row } = before;
      const threads = tx.objectStore("threads");
      if (!isHere) return quietly(threads.delete(threadId));
      quietly(
        threads.put({
          ...row,
          ...(title !== undefined && { title }),
          ...(archived !== undefined && { archived: flag(archived) }),
          ...(pinned !== undefined && { pinned: flag(pinned) }),
        }),
      );
    });
  },
});

/** Nobody has renamed, pinned or archived it, or taken that back, since the thread was read. */
const isListedAs = async (codec: PayloadCodec, row: ThreadRecord, thread: AbsentThread): Promise<boolean> =>
  isThread(row) &&
  row.archived === flag(thread.archived) &&
  row.pinned === flag(thread.pinned) &&
  (await decodeTitle(codec, row)) === thread.title;

const flag = (is: boolean): 0 | 1 => (is ? 1 : 0);

async function standing(
  tx: WriteTransaction,
  threadId: string,
): Promise<{ readonly before: ThreadRecord | undefined; readonly isHere: boolean }> {
  const [before, head] = await Promise.all([
    tx.objectStore("threads").get(threadId),
    tx.objectStore("heads").get(threadId),
  ]);
  // An invalid head belongs to a thread that is here.
  return { before, isHere: head !== undefined && !(isHead(head) && head.deleted === true) };
}

async function rowOf(
  codec: PayloadCodec,
  { threadId, title, agentId, archived, pinned, createdAt, updatedAt, lastStatus }: AbsentThread,
): Promise<ThreadRecord> {
  return {
    threadId,
    title: await encodeTitle(codec, threadId, title),
    archived: flag(archived),
    pinned: flag(pinned),
    createdAt,
    updatedAt,
    runCount: 0,
    eventCount: 0,
    absent: 1,
    ...defined({ agentId, lastStatus }),
  };
}
