import type { ThreadUpdate } from "../../run/types.js";
import type { ThreadRow } from "../run-store.js";
import { checkThread } from "./checks.js";
import type { Connection } from "./connection.js";
import { quietly } from "./records.js";
import type { ThreadRecord } from "./schema.js";
import { toThreadRow } from "./thread-reads.js";

/**
 * `heads` is not in the scope: appends of all threads would wait behind it. A deletion takes the row in the transaction
 * that writes the tombstone, so a row that is there is that of a thread that is there.
 */
export function updateThread(
  connection: Connection,
  threadId: string,
  { title, archived, pinned }: ThreadUpdate,
): Promise<ThreadRow | undefined> {
  return connection.write(["threads"], "strict", async (tx) => {
    const threads = tx.objectStore("threads");
    const before = checkThread(await threads.get(threadId));
    if (before === undefined) return undefined;
    const after: ThreadRecord = {
      ...before,
      ...(title !== undefined && { title, named: 1 }),
      ...(archived !== undefined && { archived: archived ? 1 : 0 }),
      ...(pinned !== undefined && { pinned: pinned ? 1 : 0 }),
    };
    quietly(threads.put(after));
    return toThreadRow(after);
  });
}
