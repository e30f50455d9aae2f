import type { Interrupt, State } from "@ag-ui/client";
import { RunnerError } from "../../run/errors.js";
import { chunkSize, sizeOf } from "../../run/size.js";
import type { Chunk } from "../../run/types.js";
import { byPlace, type Place } from "../message-page.js";
import type {
  Derived,
  MessageRow,
  NamedRun,
  PersistedInput,
  RunClosing,
  RunRow,
  ThreadHead,
  ThreadRow,
} from "../run-store.js";
import type { WaitingRow } from "../waiting.js";

/** The data of a {@link memoryRunStore}. Plain data without code, so that it outlives a hot reload. */
export interface MemoryData {
  /** The newest one. */
  epoch: number;
  readonly threads: Map<string, MemoryThread>;
  /** Ids of the threads with a live run. */
  readonly live: Set<string>;
  /** Ids of deleted threads, in the order of deletion. */
  readonly deleted: Set<string>;
  /** Ids of threads by run id. */
  readonly threadsOfRun: Map<string, Set<string>>;
  /** Waiting runs by thread, in order; lists are replaced, never changed. Data of older code has none. */
  waiting?: Map<string, readonly WaitingRow[]>;
}

export interface MemoryThread {
  /** Replaced, never changed. */
  head: ThreadHead;
  /** Absent if the thread is deleted. Replaced, never changed. */
  row: ThreadRow | undefined;
  /** By runIndex, ascending. Only runs that count. */
  readonly runs: Map<number, MemoryRun>;
  /** The newest runIndex by run id. */
  readonly indexOf: Map<string, number>;
  /** The runIndexes of runs whose id another one has, by run id. */
  formersOf?: Map<string, number[]>;
  /** About how many bytes its ended runs take, see `sizeOf`. */
  bytes: number;
  /** Index of message rows; absent until a page is read, and after rows were deleted. */
  rows?: RowIndex;
}

/** Places of message rows, ascending. */
export interface RowIndex {
  readonly byId: Map<string, Place[]>;
  /** By the message that they follow. */
  readonly after: Map<string, Place[]>;
  /** Rows that reset the thread. */
  readonly resets: Place[];
}

export interface MemoryRun {
  /** Replaced, never changed. */
  row: RunRow;
  readonly input: PersistedInput;
  readonly chunks: Chunk[];
  closing?: RunClosing;
  left?: MemoryLeft;
  /** Its part of the thread's. */
  bytes?: number;
}

/** What a run left behind. */
export interface MemoryLeft {
  readonly messages: readonly MessageRow[];
  /** The thread's messages start over with these. */
  readonly resets: boolean;
  readonly state: State;
  readonly interrupts: readonly Interrupt[];
}

/** @param epoch epochs start above it, see `epochBefore` */
export const emptyMemoryData = (epoch = 0): MemoryData => ({
  epoch,
  threads: new Map(),
  live: new Set(),
  deleted: new Set(),
  threadsOfRun: new Map(),
});

/** The row of a thread that has none yet. */
export const newThread = (threadId: string, createdAt: number, updatedAt = createdAt): ThreadRow => ({
  threadId,
  title: "",
  archived: false,
  pinned: false,
  createdAt,
  updatedAt,
  runCount: 0,
});

/** A run to be added, and its thread with it. */
interface AddedRun extends Pick<MemoryThread, "head" | "row"> {
  readonly run: MemoryRun;
  /** It has the id up to now. */
  readonly former: RunRow | undefined;
  /** The run is found by its id from now on. */
  readonly takesId: boolean;
}

/** @param before undefined: the thread is a new one */
export function addRun(
  data: MemoryData,
  before: MemoryThread | undefined,
  { head, row, run, former, takesId }: AddedRun,
): MemoryThread {
  const thread = before ?? { head, row, runs: new Map(), indexOf: new Map(), bytes: 0 };
  const { threadId, runId, runIndex } = run.row;
  if (former !== undefined) giveWay(thread, former);
  thread.runs.set(runIndex, run);
  if (takesId) thread.indexOf.set(runId, runIndex);
  else giveWay(thread, run.row);
  thread.head = head;
  thread.row = row;
  data.threads.set(threadId, thread);
  data.deleted.delete(threadId);
  data.threadsOfRun.set(runId, (data.threadsOfRun.get(runId) ?? new Set()).add(threadId));
  return thread;
}

export const runOf = (data: MemoryData, threadId: string, runIndex: number): MemoryRun | undefined =>
  data.threads.get(threadId)?.runs.get(runIndex);

/** See `runById` of the store. */
export function runOfId(thread: MemoryThread | undefined, runId: string, fingerprint?: string): MemoryRun | undefined {
  const newest = thread?.runs.get(thread.indexOf.get(runId) ?? -1);
  if (newest === undefined || fingerprint === undefined || newest.row.fingerprint === fingerprint) return newest;
  return formersOf(thread, runId).find(({ row }) => row.fingerprint === fingerprint) ?? newest;
}

const formersOf = (thread: MemoryThread | undefined, runId: string): readonly MemoryRun[] =>
  (thread?.formersOf?.get(runId) ?? []).flatMap((runIndex) => thread?.runs.get(runIndex) ?? []);

/** See `runNamed` of the store. */
export function runOfName(thread: MemoryThread | undefined, { runId, answerId }: NamedRun): MemoryRun | undefined {
  const newest = runOfId(thread, runId);
  if (newest !== undefined && newest.row.answerId === answerId) return newest;
  return formersOf(thread, runId).find(({ row }) => row.answerId === answerId);
}

/** Another run has this one's id. */
function giveWay(thread: MemoryThread, { runId, runIndex }: RunRow): void {
  thread.formersOf ??= new Map();
  thread.formersOf.set(runId, [...(thread.formersOf.get(runId) ?? []), runIndex]);
}

export function removeRun(data: MemoryData, thread: MemoryThread, runIndex: number): void {
  const { threadId } = thread.head;
  const row = thread.runs.get(runIndex)?.row;
  if (row === undefined) return;
  const { runId } = row;
  thread.bytes -= thread.runs.get(runIndex)?.bytes ?? 0;
  thread.runs.delete(runIndex);
  delete thread.rows;
  if (thread.indexOf.get(runId) !== runIndex) {
    const formers = thread.formersOf?.get(runId)?.filter((former) => former !== runIndex) ?? [];
    if (formers.length === 0) thread.formersOf?.delete(runId);
    else thread.formersOf?.set(runId, formers);
    return;
  }
  thread.indexOf.delete(runId);
  const threads = data.threadsOfRun.get(runId);
  threads?.delete(threadId);
  if (threads?.size === 0) data.threadsOfRun.delete(runId);
}

export const leftBy = ({ messages, rewritten, state, interrupts }: Derived): MemoryLeft =>
  structuredClone({ messages, resets: rewritten, state, interrupts });

/** Sets or replaces what the run left behind. */
export function leave(thread: MemoryThread, run: MemoryRun, left: MemoryLeft): void {
  if (run.left !== undefined) delete thread.rows;
  run.left = left;
  if (thread.rows !== undefined) addRows(thread.rows, run.row.runIndex, left);
}

/** What the run left behind is gone. */
export function unleave(thread: MemoryThread, run: MemoryRun): void {
  delete run.left;
  delete run.closing;
  delete thread.rows;
}

/** Counts the bytes of an ended run, again if it changed. */
export function weigh(thread: MemoryThread, run: MemoryRun): void {
  const bytes = run.chunks.reduce((sum, chunk) => sum + chunkSize(chunk), sizeOf([run.input, run.left]));
  thread.bytes += bytes - (run.bytes ?? 0);
  run.bytes = bytes;
}

export function rowsOf(thread: MemoryThread): RowIndex {
  if (thread.rows !== undefined) return thread.rows;
  const rows: RowIndex = { byId: new Map(), after: new Map(), resets: [] };
  for (const { row, left } of thread.runs.values()) if (left !== undefined) addRows(rows, row.runIndex, left);
  thread.rows = rows;
  return rows;
}

function addRows({ byId, after, resets }: RowIndex, runIndex: number, left: MemoryLeft): void {
  if (left.resets) insert(resets, { runIndex, n: 0 });
  left.messages.forEach((row, n) => {
    insert(listIn(byId, row.message.id), { runIndex, n });
    if (row.after !== undefined) insert(listIn(after, row.after), { runIndex, n });
  });
}

function listIn(lists: Map<string, Place[]>, id: string): Place[] {
  const list = lists.get(id) ?? [];
  lists.set(id, list);
  return list;
}

/** Nearly always at the end: runs end one after the other. */
function insert(places: Place[], place: Place): void {
  let at = places.length;
  while (at > 0 && byPlace(places[at - 1]!, place) > 0) at--;
  places.splice(at, 0, place);
}

/** Errors: `corrupt-record`, if the data was changed from outside. */
export function liveRun(thread: MemoryThread, runIndex: number): MemoryRun {
  const run = thread.runs.get(runIndex);
  if (run === undefined) throw new RunnerError("corrupt-record", { threadId: thread.head.threadId, store: "runs" });
  return run;
}

/** The index of the first chunk with an event after `seq`; the number of chunks if there is none. */
export function placeAfter(chunks: readonly Chunk[], seq: number): number {
  let low = 0;
  let high = chunks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const chunk = chunks[middle]!;
    if (chunk.firstSeq + chunk.count - 1 > seq) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Inserts the chunk in order, or replaces the one that begins with the same event. */
export function putChunk(chunks: Chunk[], chunk: Chunk): void {
  const place = placeAfter(chunks, chunk.firstSeq - 1);
  chunks.splice(place, chunks[place]?.firstSeq === chunk.firstSeq ? 1 : 0, chunk);
}
