import "fake-indexeddb/auto";
import { expect, test } from "vitest";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { emptyMemoryData, memoryRunStore } from "../../../src/storage/memory/memory-run-store.js";
import { freshDb } from "../runner/kit.js";
import { countReads } from "./idb-reads.js";
import { describeMessagePages, leaving } from "./message-page.suite.js";
import { opened } from "./stores.js";

describeMessagePages("pages of messages in the memory store", () => memoryRunStore(emptyMemoryData()));
describeMessagePages(
  "pages of messages in IndexedDB, on fake-indexeddb",
  () => indexedDBRunStore({ dbName: freshDb() }),
  40,
);

test.each([undefined, "back"])("a page costs the same in a short thread and in a long one: %s (L16)", async (kind) => {
  const costs = [];
  for (const runs of [40, 400]) {
    const store = opened();
    // Each run asks, answers, changes the message that stands first, and puts a late result behind an earlier message.
    for (let n = 0; n < runs; n++) {
      const of = (id: string, role: "user" | "assistant") => ({ message: { id, role, content: `${n}` } }) as const;
      await leaving(store, [
        of("first", "assistant"),
        of(`u${n}`, "user"),
        of(`a${n}`, "assistant"),
        ...(n > 0 && n % 5 === 0 ? [{ ...of(`late${n}`, "assistant"), after: `u${n - 1}` }] : []),
      ]);
    }
    const before = kind === undefined ? undefined : `u${runs - 10}`;
    const reads = countReads();
    const page = await store.messagePage("t", runs - 1, undefined, { before, limit: 12 });
    costs.push({ ...reads.stop(), length: page!.messages.length, earlier: page!.earlier });
  }
  expect(costs[0]).toEqual(costs[1]);
  expect(costs[0]).toMatchObject({ length: 12, earlier: true });
  expect(costs[0]!.values).toBeLessThan(60);
});
