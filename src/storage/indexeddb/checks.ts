import { RunnerError } from "../../run/errors.js";
import type { ChunkRecord, HeadRecord, RunRecord } from "./schema.js";

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

export function isHead(record: HeadRecord): boolean {
  const { live } = record;
  return (
    isIndex(record.epoch) &&
    isIndex(record.runCount) &&
    Number.isSafeInteger(record.activeRunIndex) &&
    record.activeRunIndex < record.runCount &&
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
