import { EventType, omitOptionalNulls } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { abortWith } from "../../platform/abort.js";
import { systemClock, type Clock } from "../../platform/clock.js";
import { RunnerError } from "../../run/errors.js";
import type { Cursor } from "../../run/types.js";

/** An event as it goes to a reader over HTTP. */
export interface SseEvent {
  readonly event: BaseEvent;
  /** How far a reader is that has this event. */
  readonly cursor?: Cursor;
}

export interface SseOptions {
  /** A comment line is sent after so many ms of silence, while the reader waits for something to read. 0: none. */
  readonly keepAliveMs: number;
  /** Rewrites each event for the reader. */
  readonly map?: ((event: BaseEvent) => BaseEvent) | undefined;
  /** Further headers. Content-Type, Cache-Control and X-Accel-Buffering are set here. */
  readonly headers?: HeadersInit;
  readonly clock?: Clock;
}

/** A piece of the body is about so large, in bytes; larger only where one event is. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Answers with a stream of events. The source is asked for a batch only where the reader has read all of the one before
 * and waits for more, so a reader that does not read costs one batch.
 *
 * A source that fails in the middle of a run ends the stream with a RUN_ERROR, which stands in no log: `code` and
 * `message` are those of a {@link RunnerError}, or say no more than that the runtime failed. Where no run is open the body
 * fails, as a cut connection does.
 *
 * Cancelling the body calls the source's `return()` at once, and does not wait for it.
 *
 * @param source batches of events, in order
 * @throws RunnerError `invalid-input`: `keepAliveMs` is no number of ms
 */
export function sseResponse(source: AsyncIterable<readonly SseEvent[]>, options: SseOptions): Response {
  const { keepAliveMs, map, clock = systemClock } = options;
  if (!(keepAliveMs >= 0)) {
    throw new RunnerError("invalid-input", { field: "keepAliveMs" }, { message: "keepAliveMs must be 0 or more" });
  }
  const headers = new Headers(options.headers);
  headers.set("Content-Type", "text/event-stream");
  headers.set("Cache-Control", "no-cache");
  // Proxies in front (nginx) would else hold events back until they have a buffer full.
  headers.set("X-Accel-Buffering", "no");
  const body = new EventBody(source, {
    map: map ?? ((event) => event),
    keepAliveMs: keepAliveMs === 0 ? Infinity : keepAliveMs,
    clock,
  });
  // With no room of its own the stream asks only while somebody reads.
  return new Response(new ReadableStream<Uint8Array>(body, { highWaterMark: 0 }), { headers });
}

/** A cursor as the `id:` of a server-sent event. */
export function formatCursor({ runIndex, seq, epoch }: Cursor): string {
  return `${runIndex}.${seq}.${epoch}`;
}

const CURSOR = /^(\d{1,16})\.(-1|\d{1,16})\.(\d{1,16})$/;

/** The cursor in the id that a reader sends back (`Last-Event-ID`); undefined for anything that is none. */
export function parseCursor(id: unknown): Cursor | undefined {
  const parts = typeof id === "string" ? CURSOR.exec(id) : null;
  if (parts === null) return undefined;
  const cursor: Cursor = { runIndex: Number(parts[1]), seq: Number(parts[2]), epoch: Number(parts[3]) };
  // Each number has one spelling, and none is rounded.
  return Object.values(cursor).every(Number.isSafeInteger) && formatCursor(cursor) === id ? cursor : undefined;
}

const utf8 = new TextEncoder();
const KEEP_ALIVE = utf8.encode(": keep-alive\n\n");

/**
 * What the AG-UI encoder's `encodeSSE` makes of an event (a test compares them), after its cursor. That package brings
 * protobuf, which would weigh on every worker; no reader of CopilotKit's runtime is sent it either.
 */
function encoded({ event, cursor }: SseEvent): Uint8Array {
  const id = cursor === undefined ? "" : `id: ${formatCursor(cursor)}\n`;
  return utf8.encode(`${id}data: ${JSON.stringify(omitOptionalNulls(event, "Event"))}\n\n`);
}

interface BodyOptions {
  readonly map: (event: BaseEvent) => BaseEvent;
  readonly keepAliveMs: number;
  readonly clock: Clock;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;
type Batch = IteratorResult<readonly SseEvent[], unknown>;

/** The bytes of a stream of events, made where they are asked for. */
class EventBody implements UnderlyingDefaultSource<Uint8Array> {
  readonly #source: AsyncIterator<readonly SseEvent[]>;
  readonly #options: BodyOptions;
  readonly #cancelled = new AbortController();
  /** What the source was asked for and has not answered: a comment line can go out meanwhile. */
  #asked: Promise<Batch> | undefined;
  #batch: readonly SseEvent[] = [];
  /** How many events of the batch were made into bytes. */
  #taken = 0;
  /** An event that was made into bytes and was too large for the last piece. */
  #ahead: Uint8Array | undefined;
  /** A RUN_STARTED went out and no terminal event after it. */
  #isOpen = false;

  constructor(source: AsyncIterable<readonly SseEvent[]>, options: BodyOptions) {
    this.#source = source[Symbol.asyncIterator]();
    this.#options = options;
  }

  async pull(controller: Controller): Promise<void> {
    try {
      while (this.#taken === this.#batch.length && this.#ahead === undefined) {
        const next = await this.#next();
        if (this.#cancelled.signal.aborted) return;
        if (next === "silence") return controller.enqueue(KEEP_ALIVE);
        if (next.done === true) return controller.close();
        this.#batch = next.value;
        this.#taken = 0;
      }
      this.#send(controller);
    } catch (error) {
      if (this.#cancelled.signal.aborted) return;
      this.#release();
      this.#fail(controller, error);
    }
  }

  cancel(): void {
    this.#cancelled.abort();
    this.#batch = [];
    this.#taken = 0;
    this.#ahead = undefined;
    this.#release();
  }

  /** The source's next batch, or that nothing came for so long. */
  async #next(): Promise<Batch | "silence"> {
    const asked = (this.#asked ??= this.#source.next());
    const next = await this.#orSilence(asked);
    // A batch that comes between two looks of the reader is the next one's.
    if (next !== "silence") this.#asked = undefined;
    return next;
  }

  async #orSilence(asked: Promise<Batch>): Promise<Batch | "silence"> {
    const { clock, keepAliveMs } = this.#options;
    if (keepAliveMs === Infinity) return asked;
    const over = abortWith(this.#cancelled.signal);
    try {
      return await Promise.race([asked, clock.after(keepAliveMs, over.signal).then(() => "silence" as const)]);
    } finally {
      over.abort();
    }
  }

  /** One piece of what is left of the batch. */
  #send(controller: Controller): void {
    const pieces: Uint8Array[] = this.#ahead === undefined ? [] : [this.#ahead];
    let size = this.#ahead?.byteLength ?? 0;
    this.#ahead = undefined;
    try {
      while (this.#taken < this.#batch.length && size < CHUNK_BYTES) {
        const bytes = this.#encoded(this.#batch[this.#taken]!);
        this.#taken++;
        if (size > 0 && size + bytes.byteLength > CHUNK_BYTES) {
          this.#ahead = bytes;
          break;
        }
        pieces.push(bytes);
        size += bytes.byteLength;
      }
    } finally {
      // An event that cannot be made into bytes does not take those before it along.
      if (size > 0) controller.enqueue(joined(pieces, size));
    }
  }

  #encoded({ event, cursor }: SseEvent): Uint8Array {
    const mapped = this.#options.map(event);
    const bytes = encoded(cursor === undefined ? { event: mapped } : { event: mapped, cursor });
    if (event.type === EventType.RUN_STARTED) this.#isOpen = true;
    if (event.type === EventType.RUN_FINISHED || event.type === EventType.RUN_ERROR) this.#isOpen = false;
    return bytes;
  }

  #fail(controller: Controller, error: unknown): void {
    const [code, message] = RunnerError.is(error)
      ? [error.code, error.message]
      : ["INTERNAL_ERROR", "The runtime failed"];
    if (this.#isOpen) {
      try {
        controller.enqueue(this.#encoded({ event: { type: EventType.RUN_ERROR, message, code } }));
        return controller.close();
      } catch {
        // Then the body fails.
      }
    }
    // Without a cause: whoever reads it may be in another context.
    controller.error(RunnerError.is(error) ? error : new RunnerError("host-failed", {}, { message }));
  }

  /** Tells the source that nothing more is read. What it still does fails for nobody. */
  #release(): void {
    try {
      this.#source.return?.()?.then(undefined, () => undefined);
    } catch {
      // A source that cannot even be ended is nobody's to wait for.
    }
  }
}

function joined(pieces: readonly Uint8Array[], size: number): Uint8Array {
  if (pieces.length === 1) return pieces[0]!;
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.byteLength;
  }
  return all;
}
