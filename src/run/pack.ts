import type { BaseEvent } from "@ag-ui/client";
import { isTextDelta } from "./event-kinds.js";
import type { Chunk, OpenConstructs, PackedEntry } from "./types.js";

/** One event out of a chunk, with its place and arrival time in its run. */
export interface PlacedEvent {
  readonly event: BaseEvent;
  readonly seq: number;
  readonly at: number;
}

type Fields = Readonly<Record<string, unknown>>;

const isDelta = (event: BaseEvent): event is BaseEvent & { delta: string } =>
  isTextDelta(event.type) && typeof (event as Fields)["delta"] === "string";

function countKeys(event: object): number {
  let count = 0;
  for (const _ in event) count++;
  return count;
}

/** True when both have the same fields with the same primitive values, `delta` aside. */
function equalButDelta(first: Fields, event: Fields, keyCount: number): boolean {
  let count = 0;
  for (const key in event) {
    count++;
    if (key === "delta") continue;
    const value = event[key];
    const type = typeof value;
    if ((type === "object" && value !== null) || type === "function" || !Object.is(value, first[key])) return false;
    if (type === "undefined" && !(key in first)) return false;
  }
  return count === keyCount;
}

/** Collects entries and joins adjacent deltas. Joining costs one `+=` per delta. */
class Entries {
  #done: PackedEntry[] = [];
  #tail: (BaseEvent & { delta: string }) | undefined;
  #tailKeys = 0;
  #text = "";
  #cuts: number[] | undefined;
  #joined = false;

  add(event: BaseEvent, cuts?: readonly number[]): void {
    if (!isDelta(event)) {
      this.#close();
      this.#done.push(cuts === undefined ? { event } : { event, cuts });
      return;
    }
    const tail = this.#tail;
    if (tail !== undefined && tail.type === event.type && equalButDelta(tail, event, this.#tailKeys)) {
      this.#cuts ??= [this.#text.length];
      if (cuts === undefined) this.#cuts.push(event.delta.length);
      else for (const cut of cuts) this.#cuts.push(cut);
      this.#text += event.delta;
      this.#joined = true;
      return;
    }
    this.#close();
    this.#tail = event;
    this.#tailKeys = countKeys(event);
    this.#text = event.delta;
    this.#cuts = cuts === undefined ? undefined : [...cuts];
    this.#joined = false;
  }

  take(): PackedEntry[] {
    this.#close();
    const done = this.#done;
    this.#done = [];
    return done;
  }

  #close(): void {
    const tail = this.#tail;
    if (tail === undefined) return;
    const event = this.#joined ? { ...tail, delta: this.#text } : tail;
    this.#done.push(this.#cuts === undefined ? { event } : { event, cuts: this.#cuts });
    this.#tail = undefined;
    this.#cuts = undefined;
    this.#text = "";
  }
}

/** Arrival times as pairs of (number of events, ms after the first one), flat. */
class Times {
  at = 0;
  flat: number[] = [];

  add(at: number, count = 1): void {
    const flat = this.flat;
    if (flat.length === 0) this.at = at;
    const after = at - this.at;
    if (flat.length > 0 && flat[flat.length - 1] === after) flat[flat.length - 2]! += count;
    else flat.push(count, after);
  }
}

/**
 * Packs the events of one run, in order, into chunks. Packing is lossless: {@link unpackChunk} gives back each event
 * with its time.
 *
 * Event objects are never written to. Those that are not joined are kept by reference, so they must not change any more.
 */
export class ChunkBuilder {
  readonly #run: Pick<Chunk, "threadId" | "runIndex" | "epoch">;
  #nextSeq: number;
  #count = 0;
  #entries = new Entries();
  #times = new Times();

  constructor({
    threadId,
    runIndex,
    epoch,
    firstSeq = 0,
  }: Pick<Chunk, "threadId" | "runIndex" | "epoch"> & Partial<Chunk>) {
    this.#run = { threadId, runIndex, epoch };
    this.#nextSeq = firstSeq;
  }

  /** Events added since the last take. */
  get count(): number {
    return this.#count;
  }

  /** The sequence number that the next event gets. */
  get nextSeq(): number {
    return this.#nextSeq;
  }

  /** @param at arrival time, whole ms since the Unix epoch */
  add(event: BaseEvent, at: number): void {
    this.#entries.add(event);
    this.#times.add(at);
    this.#count++;
    this.#nextSeq++;
  }

  /**
   * The chunk of everything added since the last call; `undefined` if that is nothing.
   *
   * @param open constructs that are open after its last event
   */
  take(open?: OpenConstructs): Chunk | undefined {
    const count = this.#count;
    if (count === 0) return undefined;
    const times = this.#times;
    this.#count = 0;
    this.#times = new Times();
    return {
      ...this.#run,
      firstSeq: this.#nextSeq - count,
      count,
      entries: this.#entries.take(),
      at: times.at,
      times: times.flat,
      ...(open === undefined ? {} : { open }),
    };
  }
}

/** The sequence number of the last event in a chunk. */
export const lastSeq = (chunk: Chunk): number => chunk.firstSeq + chunk.count - 1;

/** The events of an entry, each as it was given. */
export function unpackEntry(entry: PackedEntry): BaseEvent[] {
  const { event, cuts } = entry;
  if (cuts === undefined) return [event];
  const text = (event as Fields)["delta"] as string;
  let from = 0;
  return cuts.map((length) => ({ ...event, delta: text.slice(from, (from += length)) }));
}

/** The arrival times of a chunk's events, in order. */
function unpackTimes(chunk: Chunk): number[] {
  const all: number[] = [];
  for (let i = 0; i + 1 < chunk.times.length; i += 2) {
    const at = chunk.at + chunk.times[i + 1]!;
    for (let n = chunk.times[i]!; n > 0; n--) all.push(at);
  }
  return all;
}

/** All events of a chunk with their sequence numbers and arrival times. */
export function unpackChunk(chunk: Chunk): PlacedEvent[] {
  const times = unpackTimes(chunk);
  const all: PlacedEvent[] = [];
  for (const entry of chunk.entries) {
    for (const event of unpackEntry(entry)) {
      all.push({ event, seq: chunk.firstSeq + all.length, at: times[all.length] ?? chunk.at });
    }
  }
  return all;
}

/** An entry without its first `dropped` events; it must have more. */
function sliceEntry(entry: PackedEntry, dropped: number): PackedEntry {
  if (dropped === 0 || entry.cuts === undefined) return entry;
  const cuts = entry.cuts.slice(dropped);
  const start = entry.cuts.slice(0, dropped).reduce((sum, length) => sum + length, 0);
  const event = { ...entry.event, delta: ((entry.event as Fields)["delta"] as string).slice(start) };
  return cuts.length === 1 ? { event } : { event, cuts };
}

/** The chunk without the events before `fromSeq`; `undefined` if none is left. */
export function sliceChunk(chunk: Chunk, fromSeq: number): Chunk | undefined {
  let drop = fromSeq - chunk.firstSeq;
  if (drop <= 0) return chunk;
  if (drop >= chunk.count) return undefined;
  const count = chunk.count - drop;

  const times = new Times();
  let skip = drop;
  for (let i = 0; i + 1 < chunk.times.length; i += 2) {
    const n = chunk.times[i]!;
    if (n > skip) times.add(chunk.at + chunk.times[i + 1]!, n - skip);
    skip = Math.max(0, skip - n);
  }

  const entries: PackedEntry[] = [];
  for (const entry of chunk.entries) {
    const n = entry.cuts?.length ?? 1;
    if (n > drop) entries.push(sliceEntry(entry, drop));
    drop = Math.max(0, drop - n);
  }
  return { ...chunk, firstSeq: fromSeq, count, entries, at: times.at, times: times.flat };
}

/**
 * One chunk of several, which must be consecutive chunks of one run, in order, and at least one. Epoch and open
 * constructs are those of the last.
 */
export function joinChunks(chunks: readonly Chunk[]): Chunk {
  const first = chunks[0];
  const last = chunks[chunks.length - 1];
  if (first === undefined || last === undefined) throw new TypeError("joinChunks needs at least one chunk");
  if (first === last) return first;

  const entries = new Entries();
  const times = new Times();
  let count = 0;
  for (const chunk of chunks) {
    if (chunk.runIndex !== first.runIndex || chunk.firstSeq !== first.firstSeq + count) {
      throw new TypeError("joinChunks needs consecutive chunks of one run");
    }
    for (const entry of chunk.entries) entries.add(entry.event, entry.cuts);
    for (let i = 0; i + 1 < chunk.times.length; i += 2) times.add(chunk.at + chunk.times[i + 1]!, chunk.times[i]!);
    count += chunk.count;
  }
  return { ...last, firstSeq: first.firstSeq, count, entries: entries.take(), at: times.at, times: times.flat };
}
