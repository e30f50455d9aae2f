import { RunnerError } from "../../run/errors.js";
import type { RunStatus } from "../../run/types.js";
import type { ChunkRecord, Garbage, HeadRecord, MessageRecord, RunRecord, Stores, ThreadRecord } from "./schema.js";

/*
 * What is read is checked before it is trusted: another build, a person or a fault may have written it. Chromium reads a
 * record as null that is too deep for the stack of the context that reads it.
 */

/** Where a record stands that is not valid. Nothing of its content is told. */
export const corrupt = (
  store: Stores,
  at: { readonly threadId: unknown; readonly runIndex?: unknown } | null,
): RunnerError =>
  new RunnerError("corrupt-record", {
    store,
    ...(typeof at?.threadId === "string" && { threadId: at.threadId }),
    ...(typeof at?.runIndex === "number" && { runIndex: at.runIndex }),
  });

/** No counter gets there; so one more is a number too. */
const TOO_MANY = 2 ** 52;

export const isText = (value: unknown): value is string => typeof value === "string";
export const isIndex = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < TOO_MANY;
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;
const isAbsentOr = (is: (value: unknown) => boolean, value: unknown): boolean => value === undefined || is(value);
const isFlag = (value: unknown): boolean => value === 0 || value === 1;
const isTrue = (value: unknown): boolean => value === true;
/** A flag that an index lists. */
const isSet = (value: unknown): boolean => value === 1;

const STATUSES: Record<RunStatus, true> = {
  running: true,
  finished: true,
  errored: true,
  stopped: true,
  superseded: true,
  broken: true,
};
const isStatus = (value: unknown): boolean => isText(value) && Object.hasOwn(STATUSES, value);

const isStop = (stop: unknown): boolean =>
  isRecord(stop) && isText(stop["runId"]) && (stop["as"] === "stopped" || stop["as"] === "superseded");

export function isHead(record: HeadRecord): boolean {
  if (!isRecord(record)) return false;
  const { live, first = 0, runCount, activeRunIndex, underived = [] } = record;
  const valid =
    isText(record.threadId) &&
    isIndex(record.epoch) &&
    isIndex(runCount) &&
    isIndex(first) &&
    isAbsentOr(isStop, record.stop) &&
    isAbsentOr(isTrue, record.cut) &&
    isAbsentOr(isTrue, record.deleted) &&
    Array.isArray(underived) &&
    underived.every((runIndex) => isIndex(runIndex) && runIndex < runCount);
  if (record.deleted === true) return valid && first === runCount && activeRunIndex === -1 && live === undefined;
  return (
    valid &&
    isIndex(activeRunIndex) &&
    activeRunIndex < runCount &&
    (first === 0 || activeRunIndex >= first) &&
    (live === undefined
      ? record.holder === undefined
      : isRecord(live) &&
        isIndex(live.runIndex) &&
        live.runIndex < runCount &&
        isText(live.runId) &&
        isText(record.holder))
  );
}

export function checkHead(record: HeadRecord | undefined): HeadRecord | undefined {
  if (record === undefined || isHead(record)) return record;
  throw corrupt("heads", record);
}

export const isThread = (record: ThreadRecord): boolean =>
  isRecord(record) &&
  isText(record.threadId) &&
  isText(record.title) &&
  isAbsentOr(isSet, record.named) &&
  isAbsentOr(isText, record.agentId) &&
  isFlag(record.archived) &&
  isFlag(record.pinned) &&
  Number.isFinite(record.createdAt) &&
  Number.isFinite(record.updatedAt) &&
  isIndex(record.runCount) &&
  isIndex(record.eventCount) &&
  isAbsentOr(isIndex, record.bytes) &&
  isAbsentOr(isStatus, record.lastStatus);

export function checkThread(record: ThreadRecord | undefined): ThreadRecord | undefined {
  if (record === undefined || isThread(record)) return record;
  throw corrupt("threads", record);
}

export const isRun = (record: RunRecord): boolean =>
  isRecord(record) &&
  isText(record.threadId) &&
  isIndex(record.runIndex) &&
  (isText(record.runId) || isListOf(isText, record.runId)) &&
  isStatus(record.status) &&
  isIndex(record.epoch) &&
  (record.prevRunIndex === null || (isIndex(record.prevRunIndex) && record.prevRunIndex < record.runIndex)) &&
  isAbsentOr(isText, record.parentRunId) &&
  isAbsentOr(isText, record.agentId) &&
  Number.isFinite(record.startedAt) &&
  (record.status === "running" || (Number.isFinite(record.endedAt) && isIndex(record.eventCount))) &&
  isText(record.fingerprint);

export function checkRun(record: RunRecord): RunRecord;
export function checkRun(record: RunRecord | undefined): RunRecord | undefined;
export function checkRun(record: RunRecord | undefined): RunRecord | undefined {
  if (record === undefined || isRun(record)) return record;
  throw corrupt("runs", record);
}

/** Pairs of a number of events and the ms after the first. */
function isTimes(times: unknown, count: number): boolean {
  if (!Array.isArray(times) || times.length % 2 !== 0) return false;
  let sum = 0;
  for (let at = 0; at < times.length; at += 2) {
    if (!isIndex(times[at]) || !Number.isFinite(times[at + 1])) return false;
    sum += Number(times[at]);
  }
  return sum === count;
}

const isListOf = (is: (value: unknown) => boolean, value: unknown): boolean => Array.isArray(value) && value.every(is);
const isCall = (value: unknown): boolean => isRecord(value) && isText(value["toolCallId"]);
const isStep = (value: unknown): boolean =>
  isRecord(value) && isText(value["stepName"]) && isAbsentOr(isText, value["subagentRunId"]);

const isOpen = (open: unknown): boolean =>
  isRecord(open) &&
  ["textMessages", "reasoningSpans", "reasoningMessages", "subagents"].every((kind) => isListOf(isText, open[kind])) &&
  ["toolCalls", "unanswered"].every((kind) => isListOf(isCall, open[kind])) &&
  isListOf(isStep, open["steps"]);

/** As far as it can be told without its payload. */
export const isChunk = (record: ChunkRecord): boolean =>
  isRecord(record) &&
  isIndex(record.epoch) &&
  isIndex(record.firstSeq) &&
  isIndex(record.count) &&
  record.count > 0 &&
  isIndex(record.firstSeq + record.count) &&
  Number.isFinite(record.at) &&
  isTimes(record.times, record.count) &&
  isAbsentOr(isOpen, record.open);

/** @param before the record that was read before it, where that is one of the same run */
export const isMessage = (record: MessageRecord, before: MessageRecord | undefined): boolean =>
  isMessageAlone(record) && record.n === (before === undefined ? 0 : before.n + 1);

/** As far as it can be told without the record before it. */
export const isMessageAlone = (record: MessageRecord): boolean =>
  isRecord(record) &&
  isIndex(record.runIndex) &&
  isIndex(record.n) &&
  isAbsentOr(isText, record.after) &&
  isAbsentOr(isIndex, record.addedBy) &&
  (record.resets === undefined || (record.resets === 1 && record.n === 0)) &&
  (record.message === undefined ? record.resets === 1 : isText(record.messageId));

const isSpan = (pair: unknown): boolean =>
  Array.isArray(pair) && pair.length === 2 && pair.every(isIndex) && Number(pair[0]) <= Number(pair[1]);

/** @param record what stands in `meta` for the thread */
export function checkGarbage(record: unknown, threadId: string): Garbage | undefined {
  if (record === undefined) return undefined;
  const valid =
    isRecord(record) &&
    isIndex(record["epoch"]) &&
    isIndex(record["below"]) &&
    isIndex(record["chunksBelow"]) &&
    record["chunksBelow"] > 0 &&
    Array.isArray(record["runs"]) &&
    record["runs"].every(isSpan);
  if (!valid) throw corrupt("meta", { threadId });
  // Each field was checked.
  return record as unknown as Garbage;
}
