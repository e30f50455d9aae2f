import type { BaseEvent } from "@ag-ui/client";
import { expect } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import { Fold } from "../../../src/run/fold.js";
import { lastSeq, unpackChunk } from "../../../src/run/pack.js";
import type { Cursor } from "../../../src/run/types.js";
import type { AttachOptions } from "../../../src/runner/read/attach.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { MemoryData } from "../../../src/storage/memory/memory-run-store.js";
import { eventsOfFrame } from "../../../src/wire/frames.js";
import type { Frame } from "../../../src/wire/shapes.js";
import { contentOf, loggedEvents, NOTHING, truthAt } from "./truth.js";

/** Somebody who reads a thread, leaves and comes back by the cursor that it has, and checks all that it is handed. */
export class SeamReader {
  cursor: Cursor | undefined;
  /** It waits for a frame. */
  waits = false;
  error: unknown;
  frames = 0;
  private reading: AbortController | undefined;
  private source: AsyncGenerator<Frame, void> | undefined;
  private fold = new Fold(NOTHING);
  /** Everything since the last prelude, it included: one valid sequence. */
  private session: BaseEvent[] = [];
  private readonly sessions: BaseEvent[][] = [this.session];
  private readonly preludes: { readonly cursor: Cursor; readonly events: readonly BaseEvent[] }[] = [];
  private readonly handed: {
    readonly runIndex: number;
    readonly epoch: number;
    readonly seq: number;
    readonly event: BaseEvent;
  }[] = [];

  constructor(
    readonly name: string,
    private readonly threadId: string,
    private readonly data: MemoryData,
    /** How likely it takes the next frame, beside other steps: one that is frozen hardly does. */
    readonly pace: number,
  ) {}

  get isAttached(): boolean {
    return this.source !== undefined;
  }

  attach(runner: LocalAgentRunner, options: Partial<AttachOptions>): void {
    const reading = new AbortController();
    this.reading = reading;
    const request: AttachOptions = {
      threadId: this.threadId,
      ...options,
      ...(this.cursor !== undefined && { after: this.cursor }),
    };
    try {
      this.source = runner.attach(request, reading.signal);
    } catch (error) {
      this.fail(error);
    }
  }

  detach(): void {
    this.reading?.abort();
    void this.source?.return();
    this.source = undefined;
    this.waits = false;
  }

  /** Asks for the next frame. */
  pull(): void {
    const { source } = this;
    if (source === undefined) return;
    this.waits = true;
    source.next().then(
      (next) => {
        if (this.source !== source) return;
        this.waits = false;
        if (next.done === true) return this.detach();
        try {
          this.take(next.value);
        } catch (error) {
          this.error = error;
        }
      },
      (error: unknown) => this.source === source && this.fail(error),
    );
  }

  private fail(error: unknown): void {
    this.detach();
    // Its host went; it comes back in another.
    if (!RunnerError.is(error, "closed")) this.error = error;
  }

  private take(frame: Frame): void {
    this.frames++;
    const thread = this.data.threads.get(this.threadId);
    switch (frame.type) {
      case "prelude":
        this.preludes.push({ cursor: frame.cursor, events: structuredClone(frame.events) });
        this.cursor = frame.cursor;
        this.fold = new Fold(NOTHING);
        this.session = [];
        this.sessions.push(this.session);
        return this.apply(frame);
      case "run": {
        // The one before was read to its end, and this one continues it.
        const before = this.cursor;
        const row = thread?.runs.get(frame.run.runIndex)?.row;
        const rowBefore = before && thread?.runs.get(before.runIndex)?.row;
        if (before !== undefined && before.seq >= 0) {
          expect(frame.run.runIndex).toBeGreaterThan(before.runIndex);
          if (rowBefore !== undefined) expect(before.seq).toBe((rowBefore.eventCount ?? Infinity) - 1);
          if (row !== undefined && row.prevRunIndex !== null) expect(row.prevRunIndex).toBe(before.runIndex);
        }
        this.cursor = { runIndex: frame.run.runIndex, seq: -1, epoch: frame.run.epoch };
        return;
      }
      case "chunk": {
        const { chunk } = frame;
        expect(chunk.runIndex).toBe(this.cursor?.runIndex);
        expect(chunk.firstSeq).toBe((this.cursor?.seq ?? NaN) + 1);
        const run = thread?.runs.get(chunk.runIndex);
        const last = run?.chunks.at(-1);
        if (last !== undefined) expect(lastSeq(chunk)).toBeLessThanOrEqual(lastSeq(last));
        for (const { event, seq } of unpackChunk(chunk)) {
          this.handed.push({ runIndex: chunk.runIndex, epoch: chunk.epoch, seq, event: structuredClone(event) });
        }
        this.cursor = { runIndex: chunk.runIndex, seq: lastSeq(chunk), epoch: chunk.epoch };
        return this.apply(frame);
      }
      case "settled": {
        const row = thread?.runs.get(frame.runIndex)?.row;
        expect(frame.runIndex).toBe(this.cursor?.runIndex);
        if (row !== undefined)
          expect([row.status, (row.eventCount ?? NaN) - 1]).toEqual([frame.status, this.cursor?.seq]);
        return;
      }
      case "lost":
      case "error":
        throw new Error(`told ${JSON.stringify(frame)}`);
      default:
        return;
    }
  }

  private apply(frame: Frame): void {
    for (const event of structuredClone(eventsOfFrame(frame))) {
      this.session.push(structuredClone(event));
      this.fold.apply(event);
    }
  }

  /** Everything that it was ever handed is what the log says. @returns the sequences, each of which must be valid */
  check(): readonly (readonly BaseEvent[])[] {
    if (this.error !== undefined) throw this.error;
    const thread = this.data.threads.get(this.threadId);
    const logs = new Map<number, readonly BaseEvent[]>();
    for (const { runIndex, seq, event } of this.handed) {
      const run = thread?.runs.get(runIndex);
      if (run === undefined || run.chunks.length === 0) continue;
      const log = logs.get(runIndex) ?? loggedEvents(run);
      logs.set(runIndex, log);
      expect(event).toEqual(log[seq]);
    }
    for (const { cursor, events } of this.preludes) {
      const truth = truthAt(this.data, this.threadId, cursor);
      if (truth === undefined || (cursor.runIndex < 0 && thread?.head.deleted !== true)) continue;
      const fold = new Fold(NOTHING);
      for (const event of structuredClone(events)) fold.apply(event);
      expect(contentOf(fold)).toEqual(truth);
    }
    return this.sessions.filter(({ length }) => length > 0);
  }

  /** It has everything, and shows it. */
  checkAtRest(): void {
    const head = this.data.threads.get(this.threadId)?.head;
    const isNone = head === undefined || head.deleted === true;
    const active = isNone ? undefined : this.data.threads.get(this.threadId)?.runs.get(head.activeRunIndex)?.row;
    const end = active && { runIndex: active.runIndex, seq: (active.eventCount ?? NaN) - 1 };
    // Who never saw anything of a thread is not told that it went.
    if (end === undefined) expect(this.cursor?.runIndex ?? -1).toBe(-1);
    else expect(this.cursor).toMatchObject(end);
    const truth = truthAt(this.data, this.threadId, this.cursor ?? { runIndex: -1, seq: -1, epoch: 0 });
    if (truth !== undefined) expect(contentOf(this.fold)).toEqual(truth);
  }
}
