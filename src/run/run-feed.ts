import { Bell } from "../platform/bell.js";
import { lastSeq } from "./pack.js";
import { chunkSize } from "./size.js";
import type { Chunk, SettledStatus } from "./types.js";

/** Committed chunks kept in memory for readers that keep up; slower ones read the log. */
const KEPT = 64;
/** Their maximum size in all (see `sizeOf`); the newest is always kept. */
const KEPT_SIZE = 1_024 * 1_024;

/** A live run of the log whose committed chunks are handed out in this context. */
export interface FedRun {
  readonly runId: string;
  readonly answerId?: string | undefined;
  readonly runIndex: number;
  readonly epoch: number;
  readonly feed: RunFeed;
}

/** What a live run of this host has handed out: its newest committed chunks, and its end. */
export class RunFeed {
  readonly bell = new Bell();
  private chunks: Chunk[] = [];
  private size = 0;
  private count = 0;
  private end:
    | { readonly is: "open" }
    | { readonly is: "ended"; readonly status: SettledStatus }
    | { readonly is: "lost"; readonly error: unknown } = {
    is: "open",
  };

  /** @param last the seq of the last event that was handed out before, from the log */
  constructor(private last = -1) {}

  /** How many chunks were handed out. */
  get published(): number {
    return this.count;
  }

  /** The last seq that may be shown. */
  get publishedSeq(): number {
    return this.last;
  }

  /** How the run ended for its readers; `lost`: continue in the log, or fail with `error` if there is one. */
  get state(): RunFeed["end"] {
    return this.end;
  }

  /** Hands out a committed chunk. */
  publish(chunk: Chunk): void {
    this.chunks.push(chunk);
    this.count++;
    this.size += chunkSize(chunk);
    while (this.chunks.length > KEPT || (this.size > KEPT_SIZE && this.chunks.length > 1)) {
      this.size -= chunkSize(this.chunks.shift()!);
    }
    this.last = lastSeq(chunk);
    this.bell.ring();
  }

  settled(status: SettledStatus): void {
    this.end = { is: "ended", status };
    this.bell.ring();
  }

  lose(error?: unknown): void {
    if (this.end.is === "open") this.end = { is: "lost", error };
    this.bell.ring();
  }

  /** Chunks with events after `seq`, or undefined where memory does not reach back that far. */
  after(seq: number): readonly Chunk[] | undefined {
    if (seq >= this.last) return [];
    const first = this.chunks[0];
    // L2: no gap: what memory does not have is read from the log.
    if (first === undefined || first.firstSeq > seq + 1) return undefined;
    // Readers keep up, so what they miss is at the end.
    let from = this.chunks.length - 1;
    while (from > 0 && this.chunks[from]!.firstSeq > seq + 1) from--;
    return this.chunks.slice(from);
  }
}
