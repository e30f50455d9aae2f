import { RunnerError } from "../../run/errors.js";
import type { RunStore } from "../run-store.js";
import { memoryDeletion } from "./deletion.js";
import type { MemoryData } from "./memory-data.js";
import { memoryMessagePages } from "./message-pages.js";
import { memoryReads } from "./reads.js";
import { memoryRepack } from "./repack.js";
import { memoryWrites } from "./writes.js";

export { emptyMemoryData, type MemoryData } from "./memory-data.js";

/**
 * The log in memory, over data that may outlive the store: several stores over the same data see the same log.
 *
 * Inputs, closings, messages, states and interrupts are copied on their way in and on their way out; heads and rows on
 * their way out. Chunks are kept and handed out as they are: nobody changes the events in them.
 */
export function memoryRunStore(data: MemoryData): RunStore {
  let closed = false;
  const parts = {
    ...memoryWrites(data),
    ...memoryReads(data),
    ...memoryMessagePages(data),
    ...memoryDeletion(data),
    ...memoryRepack(data),
  };
  const close: RunStore["close"] = async () => {
    closed = true;
  };
  /** A closed store answers nothing, like one whose database was closed. */
  const open = <Args extends unknown[], Result>(work: (...args: Args) => Promise<Result>) => {
    return async (...args: Args): Promise<Result> => {
      if (closed) throw new RunnerError("closed");
      return work(...args);
    };
  };
  return {
    claim: open(parts.claim),
    append: open(parts.append),
    settle: open(parts.settle),
    settleForeign: open(parts.settleForeign),
    derive: open(parts.derive),
    requestStop: open(parts.requestStop),
    head: open(parts.head),
    liveHeads: open(parts.liveHeads),
    run: open(parts.run),
    runById: open(parts.runById),
    runsOfId: open(parts.runsOfId),
    runs: open(parts.runs),
    runsBefore: open(parts.runsBefore),
    input: open(parts.input),
    closing: open(parts.closing),
    chunks: open(parts.chunks),
    messageRows: open(parts.messageRows),
    messageForms: open(parts.messageForms),
    messagePage: open(parts.messagePage),
    stateAfter: open(parts.stateAfter),
    thread: open(parts.thread),
    threads: open(parts.threads),
    updateThread: open(parts.updateThread),
    deleteThread: open(parts.deleteThread),
    cut: open(parts.cut),
    repack: open(parts.repack),
    sweep: open(parts.sweep),
    threadsBeyond: open(parts.threadsBeyond),
    close,
  };
}
