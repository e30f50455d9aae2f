import { compareWritesSortKeys, TASKS, writesSortKey } from "@langchain/langgraph-checkpoint";
import { checkCheckpoint, checkValue, checkWrite } from "./checks.js";
import type { CheckpointName, GivenNames, Namespace } from "./config.js";
import {
  startingWith,
  type ChannelSource,
  type CheckpointRecord,
  type ReadTransaction,
  type SaverConnection,
  type ValueRecord,
  type WriteRecord,
} from "./schema.js";

/** The first format in which a checkpoint holds its own sends. */
const WITH_SENDS = 4;

/** The stored parts of a checkpoint. */
export interface StoredTuple {
  readonly record: CheckpointRecord;
  readonly values: readonly ValueRecord[];
  /** In the order in which LangGraph applies them. */
  readonly writes: readonly WriteRecord[];
  /** The sends of an older format; undefined if the checkpoint holds its own. */
  readonly sends: readonly WriteRecord[] | undefined;
}

/** @param id undefined: the newest of the namespace */
export function readTuple(
  connection: SaverConnection,
  namespace: Namespace,
  id: string | undefined,
): Promise<StoredTuple | undefined> {
  return connection.read(["checkpoints", "values", "writes"], async (tx) => {
    const found = await (id === undefined ? newest(tx, namespace) : one(tx, { ...namespace, id }));
    if (found === undefined) return undefined;
    const record = checkCheckpoint(found);
    const { parentId } = record;
    const [values, writes, sends] = await Promise.all([
      Promise.all(record.channels.map((source) => valueOf(tx, record, source))),
      writesOf(tx, record),
      record.format < WITH_SENDS && parentId !== undefined
        ? writesOf(tx, { ...namespace, id: parentId }, new Set([TASKS]))
        : undefined,
    ]);
    return { record, values, writes, sends };
  });
}

const one = (tx: ReadTransaction, { threadId, ns, id }: CheckpointName): Promise<CheckpointRecord | undefined> =>
  tx.objectStore("checkpoints").get([threadId, ns, id]);

async function newest(tx: ReadTransaction, { threadId, ns }: Namespace): Promise<CheckpointRecord | undefined> {
  // LangGraph's ids increase with time.
  const cursor = await tx.objectStore("checkpoints").openCursor(startingWith(threadId, ns), "prev");
  return cursor?.value;
}

async function valueOf(
  tx: ReadTransaction,
  record: CheckpointRecord,
  { channel, version, writer }: ChannelSource,
): Promise<ValueRecord> {
  const { threadId, ns } = record;
  return checkValue(await tx.objectStore("values").get([threadId, ns, channel, version, writer]), record);
}

async function writesOf(
  tx: ReadTransaction,
  { threadId, ns, id }: CheckpointName,
  channels?: ReadonlySet<string>,
): Promise<WriteRecord[]> {
  const records = await tx.objectStore("writes").getAll(startingWith(threadId, ns, id));
  return records
    .map(checkWrite)
    .filter(({ channel }) => channels === undefined || channels.has(channel))
    .map((record) => ({ record, key: writesSortKey(record.taskPath, record.taskId, record.idx) }))
    .sort((a, b) => compareWritesSortKeys(a.key, b.key))
    .map(({ record }) => record);
}

/** Records read per transaction, so that a long list does not block writers. */
const PAGE = 64;

/** A page of a list, newest first. */
export interface Page {
  readonly records: readonly CheckpointRecord[];
  /** Start of the next page; undefined at the end. */
  readonly last: CheckpointName | undefined;
}

/** Common to cursors over the store and its indexes. */
interface Walk {
  readonly value: CheckpointRecord;
  continue(): Promise<Walk | null>;
}

/**
 * Checkpoints without their values.
 *
 * @param names the ids common to all of them
 * @param before only checkpoints with a smaller id
 * @param after the last one of the previous page
 * @param limit maximum count
 */
export function readPage(
  connection: SaverConnection,
  names: GivenNames,
  before: string | undefined,
  after: CheckpointName | undefined,
  limit: number,
): Promise<Page> {
  return connection.read(["checkpoints"], async (tx) => {
    const records: CheckpointRecord[] = [];
    let last: CheckpointRecord | undefined;
    let at = await openWalk(tx, names, before, after);
    for (let looked = 0; at !== null && looked < PAGE && records.length < limit; looked++) {
      last = at.value;
      if (names.ns === undefined || names.ns === last.ns) records.push(checkCheckpoint(last));
      at = await at.continue();
    }
    return { records, last: at === null ? undefined : last };
  });
}

async function openWalk(
  tx: ReadTransaction,
  { threadId, ns, id }: GivenNames,
  before: string | undefined,
  after: CheckpointName | undefined,
): Promise<Walk | null> {
  const store = tx.objectStore("checkpoints");
  if (threadId === undefined) {
    const range = below([], id, before, after && [after.id, after.threadId, after.ns]);
    return range === undefined ? null : store.index("id").openCursor(range, "prev");
  }
  if (ns === undefined) {
    const range = below([threadId], id, before, after && [after.id, after.ns]);
    return range === undefined ? null : store.index("thread").openCursor(range, "prev");
  }
  const range = below([threadId, ns], id, before, after && [after.id]);
  return range === undefined ? null : store.openCursor(range, "prev");
}

/**
 * The keys that begin with `common` and the id, if given.
 *
 * @param before upper bound: keys below this id
 * @param after upper bound: keys below the one that ends with these parts
 * @returns undefined if there can be no such key
 */
function below(
  common: readonly string[],
  id: string | undefined,
  before: string | undefined,
  after: readonly string[] | undefined,
): IDBKeyRange | undefined {
  const lower = id === undefined ? common : [...common, id];
  const uppers: IDBValidKey[][] = [[...lower, []]];
  if (before !== undefined) uppers.push([...common, before]);
  if (after !== undefined) uppers.push([...common, ...after]);
  const upper = uppers.reduce((least, key) => (indexedDB.cmp(key, least) < 0 ? key : least));
  return indexedDB.cmp([...lower], upper) < 0 ? IDBKeyRange.bound([...lower], upper, false, true) : undefined;
}

/** Channel history up to a checkpoint. */
export interface StoredHistory {
  /** The nearest value of each channel that has one. */
  readonly seeds: readonly ValueRecord[];
  /** The writes since then, including those of the step after the seed; oldest first. */
  readonly writes: readonly WriteRecord[];
}

/**
 * Walks from a checkpoint to its first ancestor, or until each channel has a value.
 *
 * @param from the checkpoint whose ancestors are walked; undefined: the newest of the namespace
 */
export async function readHistory(
  connection: SaverConnection,
  namespace: Namespace,
  from: string | undefined,
  channels: readonly string[],
): Promise<StoredHistory> {
  const start = await connection.read(["checkpoints"], async (tx) => {
    const found = await (from === undefined ? newest(tx, namespace) : one(tx, { ...namespace, id: from }));
    return found && checkCheckpoint(found);
  });
  let next = start?.parentId;
  const open = new Set(channels);
  const seeds: ValueRecord[] = [];
  // Parents come from callers and may be cyclic: no checkpoint is passed twice.
  const steps: Steps = new Map(start && [[start.id, []]]);
  while (next !== undefined && open.size > 0) {
    const piece = await readAncestors(connection, { ...namespace, id: next }, open, steps);
    seeds.push(...piece.seeds);
    for (const [id, writes] of piece.steps) steps.set(id, writes);
    for (const { channel } of piece.seeds) open.delete(channel);
    ({ next } = piece);
  }
  return { seeds, writes: [...steps.values()].toReversed().flat() };
}

/** The writes beside each checkpoint, by its id. */
type Steps = Map<string, readonly WriteRecord[]>;

async function readAncestors(
  connection: SaverConnection,
  start: CheckpointName,
  channels: ReadonlySet<string>,
  passed: ReadonlyMap<string, unknown>,
): Promise<{ seeds: ValueRecord[]; steps: Steps; next: string | undefined }> {
  return connection.read(["checkpoints", "values", "writes"], async (tx) => {
    const open = new Set(channels);
    const seeds: ValueRecord[] = [];
    const steps: Steps = new Map();
    let next: string | undefined = start.id;
    while (next !== undefined && open.size > 0 && steps.size < PAGE) {
      const isNew = !passed.has(next) && !steps.has(next);
      const there = isNew ? await one(tx, { ...start, id: next }) : undefined;
      if (there === undefined) return { seeds, steps, next: undefined };
      const record = checkCheckpoint(there);
      const sources = record.channels.filter(({ channel }) => open.has(channel));
      const [values, writes] = await Promise.all([
        Promise.all(sources.map((source) => valueOf(tx, record, source))),
        writesOf(tx, record, open),
      ]);
      seeds.push(...values);
      steps.set(record.id, writes);
      for (const { channel } of sources) open.delete(channel);
      next = record.parentId;
    }
    return { seeds, steps, next };
  });
}
