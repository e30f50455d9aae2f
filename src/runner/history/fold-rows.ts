import type { Message } from "@ag-ui/client";
import type { ThreadBase } from "../../run/input-plan.js";
import type { StoredMessageRow } from "../../storage/run-store.js";

/** The messages that the rows of a path add up to. The store's pages give the same for a part of them. */
export function foldRows(rows: readonly StoredMessageRow[]): Pick<ThreadBase, "messages" | "runOf" | "addedBy"> {
  let messages: Message[] = [];
  const places = new Map<string, number>();
  const runOf = new Map<string, number>();
  const addedBy = new Map<string, number>();
  let rewrittenBy: number | undefined;
  for (const { resets, row, runIndex: from } of rows) {
    if (resets) {
      rewrittenBy = from;
      messages = [];
      places.clear();
      runOf.clear();
      addedBy.clear();
    }
    if (row === undefined) continue;
    const { message } = row;
    // A rewrite lists the whole thread, including several messages of one id; the first of them counts.
    const place = rewrittenBy === from ? undefined : places.get(message.id);
    const first = row.addedBy ?? runOf.get(message.id) ?? from;
    if (first !== from && !addedBy.has(message.id)) addedBy.set(message.id, first);
    runOf.set(message.id, from);
    if (rewrittenBy === from && places.has(message.id)) messages.push(message);
    else if (place !== undefined) messages[place] = message;
    else if (row.after !== undefined && places.has(row.after)) {
      messages.splice(places.get(row.after)! + 1, 0, message);
      // Of several messages of one id the first counts.
      for (let at = messages.length - 1; at >= 0; at--) places.set(messages[at]!.id, at);
    } else places.set(message.id, messages.push(message) - 1);
  }
  return { messages, runOf, addedBy };
}
