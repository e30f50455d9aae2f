import type { Message } from "@ag-ui/client";
import { byPlace, readPage, type MessageRows, type Place, type PlacedRow, type Span } from "../message-page.js";
import { readableItems } from "../../run/readable.js";
import type { RunStore } from "../run-store.js";
import { steadily } from "../steadily.js";
import { rowsOf, type MemoryData, type MemoryThread } from "./memory-data.js";

type Row = PlacedRow<Message>;

export const memoryMessagePages = (data: MemoryData): Pick<RunStore, "messagePage"> => ({
  messagePage: async (threadId, upTo, path, { before, limit }) => {
    const thread = data.threads.get(threadId);
    if (thread === undefined) return before === undefined ? { messages: [], earlier: false } : undefined;
    const page = await steadily({ head: async () => thread.head }, threadId, () =>
      readPage(rowsUpTo(thread, upTo, path), before, limit),
    );
    return page && { messages: structuredClone(readableItems(page.contents)), earlier: page.earlier };
  },
});

function rowsUpTo(thread: MemoryThread, upTo: number, path: ReadonlySet<number> | undefined): MessageRows<Message> {
  const isOn = ({ runIndex }: Place): boolean => runIndex <= upTo && (path === undefined || path.has(runIndex));
  const resets = rowsOf(thread).resets.findLast(isOn);
  const oldest = resets ?? { runIndex: thread.head.first ?? 0, n: 0 };
  const counts = (place: Place): boolean => isOn(place) && byPlace(place, oldest) >= 0;
  const rowAt = ({ runIndex, n }: Place): Row[] => {
    const row = thread.runs.get(runIndex)?.left?.messages[n];
    return row === undefined ? [] : [{ runIndex, n, id: row.message.id, after: row.after, content: row.message }];
  };

  return {
    rewrittenBy: resets?.runIndex,

    before: async (place, limit) => {
      const rows: Row[] = [];
      const from = Math.min(upTo, place?.runIndex ?? upTo);
      for (let runIndex = from; runIndex >= oldest.runIndex && rows.length < limit; runIndex--) {
        if (!isOn({ runIndex, n: 0 })) continue;
        const count = thread.runs.get(runIndex)?.left?.messages.length ?? 0;
        const end = place?.runIndex === runIndex ? place.n : count;
        for (let n = end - 1; n >= 0 && rows.length < limit; n--) rows.push(...rowAt({ runIndex, n }));
      }
      return rows;
    },

    at: async (places) => places.flatMap(rowAt),

    spans: async (ids) => {
      const { byId } = rowsOf(thread);
      const spans = new Map<string, Span>();
      for (const id of ids) {
        const places = byId.get(id) ?? [];
        const first = places.find(counts);
        if (first !== undefined) spans.set(id, { first, last: places.findLast(counts)! });
      }
      return spans;
    },

    followers: async (ids) => {
      const { after } = rowsOf(thread);
      const followers = new Map<string, Row[]>();
      for (const id of ids) {
        const rows = (after.get(id) ?? []).filter(counts).flatMap(rowAt);
        if (rows.length > 0) followers.set(id, rows);
      }
      return followers;
    },
  };
}
