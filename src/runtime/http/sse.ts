import { EventType, omitOptionalNulls } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { abortWith } from "../../platform/abort.js";
import { systemClock, type Clock } from "../../platform/clock.js";
import { RunnerError } from "../../run/errors.js";
import type { Cursor } from "../../run/types.js";
import { sizeOf } from "../../run/size.js";
import { bytesOf, jsonPieces, jsonText } from "./json-pieces.js";

/** An event as it goes to a reader over HTTP. */
export interface SseEvent {
  readonly event: BaseEvent;
  /** How far a reader is that has this event. */
  readonly cursor?: Cursor;
}

export interface SseOptions {
  /** A comment line is sent after so many ms of silence, while the reader waits for something to read. 0: none. */
  readonly keepAliveMs: number;
  /** The body fails where its reader has taken nothing for so many ms of what it was given. 0: never. */
  readonly readerTimeoutMs?: number;
  /** Rewrites each event for the reader. */
  readonly map?: ((event: BaseEvent) => BaseEvent) | undefined;
  /** Told of what ends the stream and is not for its reader to know. `isEvent`: an event cannot be made into bytes. */
  readonly failed?: (error: unknown, isEvent: boolean) => void;
  /** Further headers. Content-Type, Cache-Control and X-Accel-Buffering are set here. */
  readonly headers?: HeadersInit;
  readonly clock?: Clock;
}

/** A piece of the body is about so large, in bytes; larger only where one event is. */
const CHUNK_BYTES = 64 * 1024;
/** A larger event (see `sizeOf`) is made into bytes piece by piece. */
const LARGE = 256 * 1024;

/**
 * Answers with a stream of events. The source is asked for a batch only where the reader has read all of the one before
 * and waits for more, and a large event is made into bytes as it is read: so a reader that does not read costs one batch,
 * whose events it shares with others, and one piece of bytes.
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
  const { keepAliveMs, readerTimeoutMs = 0, map, clock = systemClock } = options;
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
    readerTimeoutMs: readerTimeoutMs === 0 ? Infinity : readerTimeoutMs,
    failed: options.failed,
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
function encoded(event: SseEvent): Uint8Array {
  return utf8.encode(`${lineOf(event)}${jsonText(omitOptionalNulls(event.event, "Event"))}\n\n`);
}

/** The same, made as it is read. */
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
  readonly map: (event: BaseEvent) => BaseEvent;
  readonly keepAliveMs: number;
  readonly readerTimeoutMs: number;
  readonly failed: SseOptions["failed"];
  readonly clock: Clock;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;
type Batch = IteratorResult<readonly SseEvent[], unknown>;

/** What is left of a large event. */
interface Rest {
  readonly piece: Uint8Array;
  readonly more: Generator<Uint8Array, void>;
}

/** The bytes of a stream of events, made where they are asked for. */
class EventBody implements UnderlyingDefaultSource<Uint8Array> {
  readonly #source: AsyncIterator<readonly SseEvent[]>;
  readonly #options: BodyOptions;
  readonly #cancelled = new AbortController();
  /** Nothing more is given. */
  readonly #over = new AbortController();
  /** What the source was asked for and has not answered: a comment line can go out meanwhile. */
  #asked: Promise<Batch> | undefined;
  #batch: readonly SseEvent[] = [];
  /** How many events of the batch were made into bytes. */
  #taken = 0;
  /** An event that was made into bytes and was too large for the last piece. */
  #ahead: Uint8Array | undefined;
  /** What is left of a large event, some of which went out. */
  #rest: Rest | undefined;
  /** Since when the reader has had something, or the whole answer, and asked for no more. */
  #givenAt: number | undefined;
  /** A RUN_STARTED went out and no terminal event after it. */
  #isOpen = false;

  constructor(source: AsyncIterable<readonly SseEvent[]>, options: BodyOptions) {
    this.#source = source[Symbol.asyncIterator]();
    this.#options = options;
  }

  /** From now on: an answer that nobody ever reads is held by its run, and its run by it. */
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

  /** One timer for all of the body: a piece is looked at once it may have lain for so long. */
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
          return this.#sendRest(controller, { piece: more.next().value!, more }); // its line, at least
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
      // An event that cannot be made into bytes does not take those before it along.
      if (size > 0) this.#give(controller, joined(pieces, size));
    }
  }

  /** A piece of a large event. The next one is made at once: so it is known whether there is one. */
  #sendRest(controller: Controller, { piece, more }: Rest): void {
    // Where the next one cannot be made, this event is torn.
    this.#rest = { piece, more };
    this.#give(controller, piece);
    const { done, value } = more.next();
    this.#rest = done === true ? undefined : { piece: value, more };
  }

  #mapped({ event, cursor }: SseEvent): SseEvent {
    const mapped = this.#options.map(event);
    return cursor === undefined ? { event: mapped } : { event: mapped, cursor };
  }

  #note({ event: { type } }: SseEvent): void {
    if (type === EventType.RUN_STARTED) this.#isOpen = true;
    if (type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR) this.#isOpen = false;
  }

  #fail(controller: Controller, error: unknown): void {
    const [code, message] = RunnerError.is(error)
      ? [error.code, error.message]
      : ["INTERNAL_ERROR", "The runtime failed"];
    // In the middle of an event there is no place for another.
    if (this.#isOpen && this.#rest === undefined) {
      try {
        controller.enqueue(encoded(this.#mapped({ event: { type: EventType.RUN_ERROR, message, code } })));
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
    this.#over.abort();
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
