import { RunnerError } from "../../run/errors.js";
import type { RunStatus } from "../../run/types.js";
import type { ChunkRecord, Garbage, HeadRecord, MessageRecord, RunRecord, Stores, ThreadRecord } from "./schema.js";

/*
 * Records are checked before they are trusted: another build, a person or a fault may have written them. Chromium reads
 * a record as null if it is nested too deeply for the stack of the reading context.
 */

/** Locates an invalid record without revealing its content. */
export const corrupt = (
  store: Stores,
  at: { readonly threadId: unknown; readonly runIndex?: unknown } | null,
): RunnerError =>
  new RunnerError("corrupt-record", {
    store,
    ...(typeof at?.threadId === "string" && { threadId: at.threadId }),
    ...(typeof at?.runIndex === "number" && { runIndex: at.runIndex }),
  });

/** No counter gets this far, so `counter + 1` is safe. */
const TOO_MANY = 2 ** 52;

export const isText = (value: unknown): value is string => typeof value === "string";
export const isIndex = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < TOO_MANY;
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;
export const isAbsentOr = (is: (value: unknown) => boolean, value: unknown): boolean =>
  value === undefined || is(value);
const isFlag = (value: unknown): boolean => value === 0 || value === 1;
const isTrue = (value: unknown): boolean => value === true;
/** A flag in an index: booleans are no keys. */
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

const isAsker = (asker: unknown): boolean => isRecord(asker) && isText(asker["id"]) && isListOf(isText, asker["tools"]);
const isDevice = (device: unknown): boolean => isRecord(device) && isText(device["id"]) && isText(device["name"]);
const isRevision = (revised: unknown): boolean =>
  isRecord(revised) && isIndex(revised["epoch"]) && isIndex(revised["from"]);

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
        isAbsentOr(isDevice, live.device) &&
        isText(record.holder))
  );
}

export const isThread = (record: ThreadRecord): boolean =>
  isRecord(record) &&
  isText(record.threadId) &&
  (isText(record.title) || record.title instanceof Uint8Array) &&
  isAbsentOr(isSet, record.named) &&
  isAbsentOr(isText, record.agentId) &&
  isFlag(record.archived) &&
  isFlag(record.pinned) &&
  Number.isFinite(record.createdAt) &&
  Number.isFinite(record.updatedAt) &&
  isIndex(record.runCount) &&
  isAbsentOr(isIndex, record.bytes) &&
  isAbsentOr(isSet, record.absent) &&
  isAbsentOr(isStatus, record.lastStatus);

export const isAttempt = (attempt: unknown): boolean =>
  isRecord(attempt) && isText(attempt["of"]) && isIndex(attempt["number"]);
const isNote = (note: unknown): boolean => isRecord(note) && (note["is"] === "ask" || note["is"] === "gave-up");

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
  isText(record.fingerprint) &&
  isAbsentOr(isAttempt, record.attempt) &&
  isAbsentOr(isIndex, record.closedFrom) &&
  isAbsentOr(isNote, record.recovery) &&
  isAbsentOr(isDevice, record.device) &&
  isAbsentOr(isAsker, record.asker) &&
  isAbsentOr(isText, record.answerId) &&
  isAbsentOr(isIndex, record.leaves) &&
  isAbsentOr(isRevision, record.revised) &&
  isAbsentOr(isIndex, record.bytes);

const checked =
  <Kind extends { readonly threadId: string }>(store: Stores, isValid: (record: Kind) => boolean) =>
  <Found extends Kind | undefined>(record: Found): Found => {
    if (record === undefined || isValid(record)) return record;
    throw corrupt(store, record);
  };

export const checkHead = checked("heads", isHead);
export const checkThread = checked("threads", isThread);
export const checkRun = checked("runs", isRun);

/** Pairs: how many events, and their ms after the chunk's first. */
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

/** Everything but its payload. */
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

/** @param before the preceding record of the same run, if any */
export const isMessage = (record: MessageRecord, before: MessageRecord | undefined): boolean =>
  isMessageAlone(record) && record.n === (before === undefined ? 0 : before.n + 1);

/** Everything but its sequence. */
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

/** @param record the thread's record in `meta` */
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
