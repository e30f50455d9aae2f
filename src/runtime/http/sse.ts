import { EventType, omitOptionalNulls } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { abortWith } from "../../platform/abort.js";
import { systemClock, type Clock } from "../../platform/clock.js";
import { RunnerError } from "../../run/errors.js";
import type { Cursor } from "../../run/types.js";
import { sizeOf } from "../../run/size.js";
import { joined } from "../../wire/read-body.js";
import { bytesOf, jsonPieces, jsonText } from "./json-pieces.js";

/** An event for a reader over HTTP. */
export interface SseEvent {
  readonly event: BaseEvent;
  /** The reader's position after this event. */
  readonly cursor?: Cursor;
}

export interface SseOptions {
  /** Ms of silence after which a waiting reader is sent a comment line. 0: never. */
  readonly keepAliveMs: number;
  /** Ms without a read after which the body fails. 0: never. */
  readonly readerTimeoutMs?: number;
  /** Rewrites each event for the reader. */
  readonly map?: ((event: BaseEvent) => BaseEvent) | undefined;
  /**
   * Called with an error that ends the stream and is hidden from its reader. `isEvent`: an event could not be
   * encoded.
   */
  readonly failed?: (error: unknown, isEvent: boolean) => void;
  /** Besides Content-Type, Cache-Control and X-Accel-Buffering. */
  readonly headers?: HeadersInit;
  readonly clock?: Clock;
}

/** Target size of a piece of the body, in bytes; a single event may exceed it. */
const CHUNK_BYTES = 64 * 1024;
/** Larger events (see `sizeOf`) are encoded piece by piece. */
const LARGE = 256 * 1024;

/**
 * A response that streams events, with backpressure. The next batch is requested only when the reader has read the previous
 * one and waits for more, and a large event is encoded while it is read. So a stalled reader costs one batch, whose events it
 * shares with other readers, and one piece of bytes.
 *
 * If the source fails in the middle of a run, the stream ends with a RUN_ERROR that is not recorded: `code` and
 * `message` are those of the {@link RunnerError}, or say only that the runtime failed. If no run is open the body
 * fails, as when a connection is cut.
 *
 * Cancelling the body calls the source's `return()` at once, without waiting for it.
 *
 * @param source batches of events, in order
 */
export function sseResponse(source: AsyncIterable<readonly SseEvent[]>, options: SseOptions): Response {
  const { keepAliveMs, readerTimeoutMs = 0, map, failed, clock = systemClock } = options;
  const headers = new Headers(options.headers);
  headers.set("Content-Type", "text/event-stream");
  // Compression in front of it would hold events back until it has enough of them.
  headers.set("Cache-Control", "no-cache, no-transform");
  // Otherwise proxies (nginx) delay events until a buffer is full.
  headers.set("X-Accel-Buffering", "no");
  const body = new EventBody(source, {
    map,
    keepAliveMs: keepAliveMs === 0 ? Infinity : keepAliveMs,
    readerTimeoutMs: readerTimeoutMs === 0 ? Infinity : readerTimeoutMs,
    failed,
    clock,
  });
  // Without its own buffer the stream pulls only while it is read.
  return new Response(new ReadableStream<Uint8Array>(body, { highWaterMark: 0 }), { headers });
}

/** A cursor as the `id:` of a server-sent event. */
export function formatCursor({ runIndex, seq, epoch }: Cursor): string {
  return `${runIndex}.${seq}.${epoch}`;
}

const CURSOR = /^(\d{1,16})\.(-1|\d{1,16})\.(\d{1,16})$/;

/** Parses the cursor that a reader sends back (`Last-Event-ID`); undefined if it is not one. */
export function parseCursor(id: unknown): Cursor | undefined {
  const parts = typeof id === "string" ? CURSOR.exec(id) : null;
  if (parts === null) return undefined;
  const cursor: Cursor = { runIndex: Number(parts[1]), seq: Number(parts[2]), epoch: Number(parts[3]) };
  // Only the canonical spelling counts, and no number is rounded.
  return Object.values(cursor).every(Number.isSafeInteger) && formatCursor(cursor) === id ? cursor : undefined;
}

const utf8 = new TextEncoder();
const KEEP_ALIVE = utf8.encode(": keep-alive\n\n");

/**
 * The same bytes as `encodeSSE` of `@ag-ui/encoder` (a test compares them), after the cursor. That package would add
 * protobuf to every worker, and CopilotKit's runtime does not send protobuf either.
 */
function encoded(event: SseEvent): Uint8Array {
  return utf8.encode(`${lineOf(event)}${jsonText(omitOptionalNulls(event.event, "Event"))}\n\n`);
}

/** The same, generated while it is read. */
function* encodedPieces(event: SseEvent): Generator<Uint8Array, void> {
  const json = jsonPieces(omitOptionalNulls(event.event, "Event"));
  yield* bytesOf(
    (function* () {
      yield lineOf(event);
      yield* json;
      yield "\n\n";
    })(),
  );
}

const lineOf = ({ cursor }: SseEvent): string => `${cursor === undefined ? "" : `id: ${formatCursor(cursor)}\n`}data: `;

interface BodyOptions {
  readonly map: SseOptions["map"];
  readonly keepAliveMs: number;
  readonly readerTimeoutMs: number;
  readonly failed: SseOptions["failed"];
  readonly clock: Clock;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;
type Batch = IteratorResult<readonly SseEvent[], unknown>;

/** The rest of a large event. */
interface Rest {
  readonly piece: Uint8Array;
  readonly more: Generator<Uint8Array, void>;
}

/** The bytes of a stream of events, encoded on demand. */
class EventBody implements UnderlyingDefaultSource<Uint8Array> {
  readonly #source: AsyncIterator<readonly SseEvent[]>;
  readonly #options: BodyOptions;
  readonly #cancelled = new AbortController();
  /** Aborted when no more bytes follow. */
  readonly #over = new AbortController();
  /** The pending request to the source; comment lines may be sent meanwhile. */
  #asked: Promise<Batch> | undefined;
  #batch: readonly SseEvent[] = [];
  /** How many events of the batch were encoded. */
  #taken = 0;
  /** An encoded event that did not fit into the last piece. */
  #ahead: Uint8Array | undefined;
  /** The rest of a large event that was sent in part. */
  #rest: Rest | undefined;
  /** When the reader last received bytes (or the response) without a read since. */
  #givenAt: number | undefined;
  /** A RUN_STARTED was sent, and no terminal event after it. */
  #isOpen = false;

  constructor(source: AsyncIterable<readonly SseEvent[]>, options: BodyOptions) {
    this.#source = source[Symbol.asyncIterator]();
    this.#options = options;
  }

  /** Starts the timeout here: a response that is never read would hold its run's events. */
  start(controller: Controller): void {
    const { clock, readerTimeoutMs } = this.#options;
    if (readerTimeoutMs === Infinity) return;
    this.#givenAt = clock.elapsed();
    void this.#watch(controller, readerTimeoutMs);
  }

  async pull(controller: Controller): Promise<void> {
    this.#givenAt = undefined;
    let isEvent = false;
    try {
      while (this.#taken === this.#batch.length && this.#ahead === undefined && this.#rest === undefined) {
        const next = await this.#next();
        if (this.#cancelled.signal.aborted) return;
        if (next === "silence") {
          this.#give(controller, KEEP_ALIVE);
          return;
        }
        if (next.done === true) {
          this.#over.abort();
          return controller.close();
        }
        this.#batch = next.value;
        this.#taken = 0;
      }
      isEvent = true;
      this.#send(controller);
    } catch (error) {
      if (this.#cancelled.signal.aborted) return;
      this.#release();
      if (!RunnerError.is(error)) this.#options.failed?.(error, isEvent);
      this.#fail(controller, error);
    }
  }

  cancel(): void {
    this.#cancelled.abort();
    this.#forget();
    this.#release();
  }

  #forget(): void {
    this.#batch = [];
    this.#taken = 0;
    this.#ahead = undefined;
    this.#rest = undefined;
  }

  #give(controller: Controller, bytes: Uint8Array): void {
    controller.enqueue(bytes);
    this.#givenAt = this.#options.clock.elapsed();
  }

  /** One timer for the whole body: it checks when the current piece may have timed out. */
  async #watch(controller: Controller, readerTimeoutMs: number): Promise<void> {
    const { clock } = this.#options;
    for (let wait = readerTimeoutMs; ;) {
      await clock.after(wait, this.#over.signal);
      if (this.#over.signal.aborted) return;
      const lain = this.#givenAt === undefined ? 0 : clock.elapsed() - this.#givenAt;
      if (lain >= readerTimeoutMs) break;
      wait = readerTimeoutMs - lain;
    }
    this.#forget();
    this.#release();
    const message = `The reader took nothing for ${readerTimeoutMs} ms`;
    controller.error(new RunnerError("timeout", {}, { message }));
  }

  /** The source's next batch, or "silence" after `keepAliveMs`. */
  async #next(): Promise<Batch | "silence"> {
    const asked = (this.#asked ??= this.#source.next());
    const next = await this.#orSilence(asked);
    // A batch that arrives between two reads is kept for the next read.
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

  /** Sends the next piece of the batch. */
  #send(controller: Controller): void {
    if (this.#rest !== undefined) return this.#sendRest(controller, this.#rest);
    const pieces: Uint8Array[] = this.#ahead === undefined ? [] : [this.#ahead];
    let size = this.#ahead?.byteLength ?? 0;
    this.#ahead = undefined;
    try {
      while (this.#taken < this.#batch.length && size < CHUNK_BYTES) {
        const next = this.#mapped(this.#batch[this.#taken]!);
        const isLarge = sizeOf(next.event, LARGE) >= LARGE;
        if (isLarge && size > 0) break;
        this.#taken++;
        this.#note(next);
        if (isLarge) {
          const more = encodedPieces(next);
          return this.#sendRest(controller, { piece: more.next().value!, more }); // at least the line before the JSON
        }
        const bytes = encoded(next);
        if (size > 0 && size + bytes.byteLength > CHUNK_BYTES) {
          this.#ahead = bytes;
          break;
        }
        pieces.push(bytes);
        size += bytes.byteLength;
      }
    } finally {
      // If an event cannot be encoded, those before it are still sent.
      if (size > 0) this.#give(controller, pieces.length === 1 ? pieces[0]! : joined(pieces, size));
    }
  }

  /** Sends a piece of a large event, and generates the next one to know whether there is one. */
  #sendRest(controller: Controller, { piece, more }: Rest): void {
    // If the next piece fails, the reader holds half an event.
    this.#rest = { piece, more };
    this.#give(controller, piece);
    const { done, value } = more.next();
    this.#rest = done === true ? undefined : { piece: value, more };
  }

  #mapped(given: SseEvent): SseEvent {
    const { map } = this.#options;
    return map === undefined ? given : { ...given, event: map(given.event) };
  }

  #note({ event: { type } }: SseEvent): void {
    if (type === EventType.RUN_STARTED) this.#isOpen = true;
    if (type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR) this.#isOpen = false;
  }

  #fail(controller: Controller, error: unknown): void {
    const [code, message] = RunnerError.is(error)
      ? [error.code, error.message]
      : ["INTERNAL_ERROR", "The runtime failed"];
    // A RUN_ERROR cannot be sent in the middle of another event.
    if (this.#isOpen && this.#rest === undefined) {
      try {
        controller.enqueue(encoded(this.#mapped({ event: { type: EventType.RUN_ERROR, message, code } })));
        return controller.close();
      } catch {
        // The body fails instead.
      }
    }
    // Without the cause: the reader may be in another context.
    controller.error(RunnerError.is(error) ? error : new RunnerError("host-failed", {}, { message }));
  }

  /** Ends the source; its errors from now on are ignored. */
  #release(): void {
    this.#over.abort();
    try {
      this.#source.return?.()?.then(undefined, () => undefined);
    } catch {
      // A source whose `return` throws has ended.
    }
  }
}
