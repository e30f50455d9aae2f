import type { BaseEvent } from "@ag-ui/client";
import type { FailurePoint } from "../../run/failure-points.js";
import { ChunkBuilder, lastSeq } from "../../run/pack.js";
import { OpenConstructTracker } from "../../run/open-constructs.js";
import type { Chunk, OpenConstructs } from "../../run/types.js";
import type { Claim, RunStore, StopRequest } from "../../storage/run-store.js";

/** Most events of one chunk: a record has a maximum size, and each slow reader holds a frame. */
const MAX_EVENTS = 4_096;

/** Awaited to go on behind what comes in the same task. `await undefined` makes a promise each time. */
const READY = Promise.resolve();

export interface LogWriterEvents {
  readonly reached: ((point: FailurePoint) => Promise<void>) | undefined;
  /** The chunk is committed: from now on it may be shown. */
  committed(chunk: Chunk): void;
  stopRequested(as: StopRequest["as"]): void;
  /** The log cannot be written: RunnerError `fenced`, or a storage error. */
  failed(error: unknown): void;
}

/**
 * Writes a run's events to the log: at once while the log is idle, else as soon as the last commit ended, so a burst
 * makes larger chunks.
 */
export class LogWriter {
  private readonly builder: ChunkBuilder;
  private readonly tracker: OpenConstructTracker;
  /** Full chunks of a burst, which come before the builder's events. */
  private full: Chunk[] = [];
  private writing: Promise<void> | undefined;
  private broken = false;
  /** Who waits for the commit of the event of this seq. */
  private waiting: { readonly seq: number; readonly done: () => void; readonly failed: (error: unknown) => void }[] =
    [];

  constructor(
    private readonly store: Pick<RunStore, "append">,
    private readonly claim: Claim,
    frontEndTools: ReadonlySet<string>,
    private readonly events: LogWriterEvents,
  ) {
    this.builder = new ChunkBuilder(claim);
    this.tracker = new OpenConstructTracker(frontEndTools);
  }

  /** Constructs that the events added so far leave open. */
  get open(): OpenConstructs | undefined {
    return this.tracker.snapshot();
  }

  add(event: BaseEvent, at: number): void {
    if (this.broken) return;
    this.tracker.note(event);
    this.builder.add(event, at);
    if (this.builder.count >= MAX_EVENTS) this.full.push(this.builder.take(this.tracker.snapshot())!);
    this.writing ??= this.write();
  }

  /** Resolves when everything added is committed, or the log failed. */
  async drain(): Promise<void> {
    await this.writing;
  }

  /** Resolves when everything added so far is committed. Errors: why the log cannot be written. */
  committed(): Promise<void> {
    if (this.writing === undefined) return Promise.resolve();
    const seq = this.builder.nextSeq - 1;
    return new Promise((done, failed) => this.waiting.push({ seq, done, failed }));
  }

  /** Packs the events that end the run, for the settling transaction. Call after `drain`. */
  finish(events: readonly BaseEvent[], at: number): Chunk {
    for (const event of events) this.builder.add(event, at);
    return this.builder.take()!;
  }

  private async write(): Promise<void> {
    // A burst that comes in one task becomes one chunk.
    await READY;
    const { reached } = this.events;
    try {
      for (let chunk = this.take(); chunk !== undefined; chunk = this.take()) {
        if (reached !== undefined) await reached("appending.packed");
        // L8: committed before it is shown.
        const { stop } = await this.store.append(this.claim, chunk);
        if (reached !== undefined) await reached("appending.committed");
        this.events.committed(chunk);
        if (this.waiting.length > 0) this.tellCommitted(lastSeq(chunk));
        if (reached !== undefined) await reached("appending.published");
        if (stop !== undefined) this.events.stopRequested(stop);
      }
    } catch (error) {
      this.broken = true;
      for (const { failed } of this.waiting.splice(0)) failed(error);
      this.events.failed(error);
    } finally {
      this.writing = undefined;
    }
  }

  private tellCommitted(seq: number): void {
    const { waiting } = this;
    this.waiting = waiting.filter((one) => one.seq > seq);
    for (const one of waiting) if (one.seq <= seq) one.done();
  }

  private take(): Chunk | undefined {
    return this.full.shift() ?? this.builder.take(this.tracker.snapshot());
  }
}
