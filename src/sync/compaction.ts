import { joinChunks, sliceChunk } from "../run/pack.js";
import { equalJson } from "../run/json.js";
import { joinGroups } from "../storage/repacking.js";
import { runKey } from "./run-key.js";
import { runName } from "./run-name.js";
import { sentOf, type DeletedMessage, type SentChunk, type WholeEntry, type WholeMessage } from "./messages.js";
import { fold, newChunks, NO_ENTRIES, type ThreadState } from "./thread-state.js";

/** An entry of a thread, as it was read. `message`: undefined for one that says nothing. */
export interface ReadEntry {
  readonly seq: number;
  readonly message: WholeEntry["message"] | WholeMessage | undefined;
  /** See SpaceFrame. */
  readonly after?: number | undefined;
}

export interface Compacted {
  readonly entries: readonly WholeEntry[];
  /** What all of them come to. */
  readonly state: ThreadState;
}

/**
 * The entries of a thread in fewer ones, which come to the same for whoever reads them from the first one: those that say
 * nothing are left out, the events of a run stand together, and of a deleted thread only the ids of its runs are left. A
 * pure function: each entry keeps its seq.
 *
 * @param entries all, from the first one. @returns undefined where fewer of them would not come to the same
 */
export function compact(entries: readonly ReadEntry[]): Compacted | undefined {
  // Where a device has ended between its claim and the end of its run, what was claimed since says whose the thread is.
  return compacted(entries, new Compaction(false)) ?? compacted(entries, new Compaction(true));
}

function compacted(entries: readonly ReadEntry[], compaction: Compaction): Compacted | undefined {
  for (const entry of entries) compaction.take(entry);
  const { state, kept } = compaction;
  return equalJson({ ...stateAfter(kept), last: state.last }, state) ? { entries: kept, state } : undefined;
}

/** Whether an entry that stands for others comes to what is known of its thread. */
export function comesTo({ upTo, entries }: WholeMessage, state: ThreadState): boolean {
  return equalJson({ ...stateAfter(entries), last: upTo }, state);
}

/** It stands for entries that were not read. One that was added after another entry than it says is none. */
export const isAheadOf = (last: number, { upTo }: WholeMessage, after = upTo): boolean => upTo > last && after === upTo;

const stateAfter = (entries: readonly WholeEntry[]): ThreadState =>
  entries.reduce((before, { seq, message }) => fold(before, seq, message).state, NO_ENTRIES);

/** A place among those that are kept. Empty: what was there moved to a later one. */
interface Place {
  entry: WholeEntry | undefined;
}

class Compaction {
  state: ThreadState = NO_ENTRIES;
  private places: Place[] = [];
  /** By the run's name, where its events stand. */
  private readonly events = new Map<string, { readonly place: Place; readonly chunks: SentChunk[] }>();
  private runs = new Set<string>();

  constructor(private readonly keepsClaims: boolean) {}

  get kept(): readonly WholeEntry[] {
    return this.places.flatMap(({ entry }) => {
      if (entry?.message.type !== "events") return entry ?? [];
      return { ...entry, message: { ...entry.message, chunks: joined(entry.message.chunks) } };
    });
  }

  take({ seq, message, after }: ReadEntry): void {
    const { last } = this.state;
    if (seq <= last) return;
    if (message?.type === "whole") this.takeWhole(message, after);
    else if (message !== undefined && (after ?? last) === last) this.takeOne(seq, message);
    this.state = { ...this.state, last: seq };
  }

  private takeWhole({ upTo, entries }: WholeMessage, after: number | undefined): void {
    if (upTo <= this.state.last || (after ?? upTo) !== upTo) return;
    this.forget();
    this.state = NO_ENTRIES;
    for (const { seq, message } of entries) this.takeOne(seq, message);
  }

  private takeOne(seq: number, message: WholeEntry["message"]): void {
    const before = this.state;
    const { state, outcome } = fold(before, seq, message);
    this.state = state;
    const isOfClaim = message.type === "claim" || message.type === "release";
    if (outcome === "nothing" && !(isOfClaim && this.keepsClaims)) return;
    switch (message.type) {
      case "run":
        this.runs.add(runKey(message));
        // Another device sends it from its first event.
        this.move(runName(message));
        this.keep(seq, message);
        break;
      case "events": {
        const { nextSeq = 0 } = before.open[message.runId] ?? {};
        // The list grows: a copy for each entry would cost the square of their count.
        const chunks = this.move(message.runId) ?? [];
        chunks.push(...newChunks(message.chunks, nextSeq).map((chunk) => restOf(chunk, nextSeq)));
        this.events.set(message.runId, { place: this.keep(seq, { ...message, chunks }), chunks });
        break;
      }
      case "end":
      case "abandon":
        this.events.delete(message.runId);
        this.keep(seq, message);
        break;
      case "deleted":
        this.keepDeletion(seq, message);
        break;
      case "thread":
        if ([message.title, message.archived, message.pinned].some((field) => field !== undefined)) {
          this.keep(seq, message);
        }
        break;
      default:
        this.keep(seq, message);
    }
  }

  private keepDeletion(seq: number, message: DeletedMessage): void {
    const runs = [...new Set([...(message.runs ?? []), ...this.runs])];
    this.forget();
    this.runs = new Set(runs);
    // Nothing stands before it any more.
    this.keep(seq, { ...message, knew: 0, runs });
  }

  private forget(): void {
    this.places = [];
    this.events.clear();
    this.runs.clear();
  }

  private keep(seq: number, message: WholeEntry["message"]): Place {
    const place = { entry: { seq, message: withoutBrief(message) } };
    this.places.push(place);
    return place;
  }

  /** The run's events leave their place. */
  private move(name: string): SentChunk[] | undefined {
    const events = this.events.get(name);
    this.events.delete(name);
    if (events !== undefined) events.place.entry = undefined;
    return events?.chunks;
  }
}

/** How its device listed the thread then. */
function withoutBrief(message: WholeEntry["message"]): WholeEntry["message"] {
  if (!("brief" in message)) return message;
  const { brief: _brief, ...rest } = message;
  return rest;
}

/** Where each device puts its own. */
const NOWHERE = { threadId: "", runIndex: 0, epoch: 0 };

/** The chunks in fewer ones, as large as those of a log. */
const joined = (chunks: readonly SentChunk[]): readonly SentChunk[] =>
  joinGroups(chunks.map((chunk) => ({ ...chunk, ...NOWHERE }))).map((group) => sentOf(joinChunks(group)));

/** The chunk without what comes before this event. */
function restOf(chunk: SentChunk, seq: number): SentChunk {
  if (chunk.firstSeq >= seq) return chunk;
  const rest = sliceChunk({ ...chunk, ...NOWHERE }, seq);
  return rest === undefined ? chunk : sentOf(rest);
}
