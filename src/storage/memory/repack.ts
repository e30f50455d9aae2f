import { joinChunks } from "../../run/pack.js";
import type { Chunk } from "../../run/types.js";
import type { RunStore } from "../run-store.js";
import { joinGroups } from "../repacking.js";
import { runOf, type MemoryData } from "./memory-data.js";

export const memoryRepack = (data: MemoryData): Pick<RunStore, "repack"> => ({
  // Everything happens before it returns, so there is no time at which it could be ended.
  repack: async (threadId, runIndex) => {
    const run = runOf(data, threadId, runIndex);
    if (run === undefined || run.row.status === "running") return;
    let chunks: readonly Chunk[] = run.chunks;
    // A joined chunk weighs less than its parts did, so that more of them may be joined.
    for (let before = Infinity; chunks.length < before;) {
      before = chunks.length;
      chunks = joinGroups(chunks).map(joinChunks);
    }
    run.chunks.length = 0;
    for (const chunk of chunks) run.chunks.push(chunk);
  },
});
