import { RunnerError } from "../../run/errors.js";
import type { ChunkRecord, Garbage, HeadRecord, RunRecord } from "./schema.js";

/** What is read is checked before it is trusted: another build, a person or a fault may have written it. */
function refuse(store: string, record: unknown): never {
  const { threadId, runIndex } = (record ?? {}) as { threadId?: unknown; runIndex?: unknown };
  throw new RunnerError("corrupt-record", {
    store,
    ...(typeof threadId === "string" && { threadId }),
    ...(typeof runIndex === "number" && { runIndex }),
  });
}

const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

function isStop(stop: HeadRecord["stop"]): boolean {
  return stop === undefined || (typeof stop.runId === "string" && (stop.as === "stopped" || stop.as === "superseded"));
}

export function isHead(record: HeadRecord): boolean {
  const { live, first = 0, runCount, activeRunIndex } = record;
  const valid = isIndex(record.epoch) && isIndex(runCount) && isIndex(first) && isStop(record.stop);
  if (record.deleted === true) return valid && first === runCount && activeRunIndex === -1 && live === undefined;
  return (
    valid &&
    Number.isSafeInteger(activeRunIndex) &&
    activeRunIndex < runCount &&
    (first === 0 || activeRunIndex >= first) &&
    (live === undefined ||
      (isIndex(live.runIndex) && typeof live.runId === "string" && typeof record.holder === "string"))
  );
}

export function checkHead(record: HeadRecord | undefined): HeadRecord | undefined {
  return record === undefined || isHead(record) ? record : refuse("heads", record);
}

export function checkRun(record: RunRecord | undefined): RunRecord | undefined {
  if (record === undefined) return undefined;
  const valid =
    isIndex(record.runIndex) &&
    typeof record.runId === "string" &&
    typeof record.status === "string" &&
    isIndex(record.epoch) &&
    (record.prevRunIndex === null || (isIndex(record.prevRunIndex) && record.prevRunIndex < record.runIndex));
  return valid ? record : refuse("runs", record);
}

export function checkChunk(record: ChunkRecord): ChunkRecord {
  const valid =
    isRecord(record) &&
    isIndex(record.firstSeq) &&
    isIndex(record.count) &&
    record.count > 0 &&
    Array.isArray(record.times);
  return valid ? record : refuse("chunks", record);
}

const isSpan = (pair: unknown): boolean =>
  Array.isArray(pair) && pair.length === 2 && pair.every(isIndex) && Number(pair[0]) <= Number(pair[1]);

/** @param record what stands in `meta` for a thread */
export function checkGarbage(record: unknown): Garbage | undefined {
  if (record === undefined) return undefined;
  const valid =
    isRecord(record) &&
    isIndex(record.epoch) &&
    isIndex(record.below) &&
    isIndex(record.chunksBelow) &&
    record.chunksBelow > 0 &&
    Array.isArray(record.runs) &&
    record.runs.every(isSpan);
  // Each field was checked.
  return valid ? (record as unknown as Garbage) : refuse("meta", record);
}
