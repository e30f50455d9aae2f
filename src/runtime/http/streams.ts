import type { BaseEvent } from "@ag-ui/client";
import { map, type Observable } from "rxjs";
import { abortWith, onAbort } from "../../platform/abort.js";
import { RunnerError } from "../../run/errors.js";
import { sizeOf } from "../../run/size.js";
import type { Frame } from "../../wire/shapes.js";
import { threadEvents } from "../../wire/thread-events.js";
import type { EventFilter } from "../event-filter.js";
import type { SseEvent } from "./sse.js";

/** A stream for one reader. */
export interface ReaderStream {
  readonly source: AsyncIterable<readonly SseEvent[]>;
  /** Resolves when everything was read; `left`: when the reader disconnected, or the stream failed, before the end. */
  readonly over: Promise<"read" | "left">;
}

/** Called with each event sent to a reader. */
export type GivenEvent = (event: BaseEvent) => void;

/** Opens a stream of frames that ends when `signal` aborts. */
export type OpenFrames = (signal: AbortSignal) => AsyncGenerator<Frame, void>;

/**
 * The events of frames, each with the cursor after it. In a snapshot only the last event has one: a reader that received
 * half a snapshot needs all of it again.
 *
 * @param signal aborts when the reader leaves
 * @param options `isRecorded`: false if the run is not in the log, so that events have no cursors; `given` is called
 *   with each event sent to the reader
 */
export function streamOfFrames(
  threadId: string,
  open: OpenFrames,
  filter: EventFilter | undefined,
  signal: AbortSignal,
  { isRecorded = true, given }: { readonly isRecorded?: boolean; readonly given?: GivenEvent | undefined } = {},
): ReaderStream {
  return readerStream(signal, async function* (until) {
    const check = threadEvents(threadId);
    for await (const frame of open(until)) {
      check(frame);
      const events = placed(frame).flatMap(({ event, ...place }): SseEvent[] => {
        const shown = filter === undefined ? event : filter(event);
        if (shown === undefined) return [];
        given?.(shown);
        return [{ event: shown, ...(isRecorded && place) }];
      });
      if (events.length > 0) yield events;
    }
  });
}

/** Buffer limit per reader (see `sizeOf`): enough for a whole thread, which may arrive at once. */
const MAX_KEPT = 32 * 1024 * 1024;

/**
 * The events of a third-party runner. It has no backpressure, so events are buffered for a slow reader. A reader that lags
 * too far behind is disconnected and may connect again.
 */
export function streamOfEvents(
  events$: Observable<BaseEvent>,
  filter: EventFilter | undefined,
  signal: AbortSignal,
): ReaderStream {
  let kept: SseEvent[] = [];
  let size = 0;
  let end: { readonly error?: unknown } | undefined;
  let wake: () => void = () => undefined;
  const stream = readerStream(signal, async function* (until) {
    onAbort(until, () => wake());
    for (;;) {
      if (kept.length === 0 && end === undefined && !until.aborted) {
        await new Promise<void>((resolve) => (wake = resolve));
      }
      if (until.aborted) return;
      const events = kept.flatMap(({ event }): SseEvent[] => {
        const shown = filter === undefined ? event : filter(event);
        return shown === undefined ? [] : [{ event: shown }];
      });
      kept = [];
      size = 0;
      if (events.length > 0) yield events;
      if (kept.length > 0 || end === undefined) continue;
      if ("error" in end) throw end.error;
      return;
    }
  });
  // Inside the pipeline, so that an event whose getters throw becomes an error of the stream.
  const weighed$ = events$.pipe(map((event) => ({ event, weight: sizeOf(event, MAX_KEPT) })));
  // Subscribe at once: a run starts with its only subscription.
  const reading = weighed$.subscribe({
    next: ({ event, weight }) => {
      // Events may arrive synchronously, before the subscription exists.
      if (end !== undefined) return;
      size += weight;
      if (size <= MAX_KEPT) kept.push({ event });
      else {
        kept = [];
        end = { error: new RunnerError("timeout", {}, { message: "The reader lags behind too far" }) };
      }
      wake();
    },
    error: (error: unknown) => {
      end ??= { error };
      wake();
    },
    complete: () => {
      end ??= {};
      wake();
    },
  });
  void stream.over.then(() => {
    kept = [];
    reading.unsubscribe();
  });
  return stream;
}

function placed(frame: Frame): readonly SseEvent[] {
  if (frame.type === "prelude") {
    const last = frame.events.length - 1;
    return frame.events.map((event, at) => (at === last ? { event, cursor: frame.cursor } : { event }));
  }
  if (frame.type !== "chunk") return [];
  const { runIndex, epoch, firstSeq, entries } = frame.chunk;
  let seq = firstSeq - 1;
  const events = entries.map(({ event, cuts }): SseEvent => {
    seq += cuts?.length ?? 1;
    return { event, cursor: { runIndex, seq, epoch } };
  });
  const [first, ...rest] = events;
  if (first === undefined || frame.base === undefined) return events;
  // A reader that received only some of them needs all of them again.
  const begins = [first.event, ...frame.base].map((event): SseEvent => ({ event }));
  return [...begins.slice(0, -1), { ...first, ...begins.at(-1)! }, ...rest];
}

/** The values of `read`, for a reader that may disconnect while `read` is pending. */
function readerStream(
  signal: AbortSignal,
  read: (until: AbortSignal) => AsyncGenerator<readonly SseEvent[], void>,
): ReaderStream {
  const reading = abortWith(signal);
  const events = read(reading.signal);
  let over!: (how: "read" | "left") => void;
  const ended = new Promise<"read" | "left">((resolve) => (over = resolve));
  const end = (how: "read" | "left"): void => {
    over(how);
    reading.abort();
  };
  onAbort(reading.signal, () => over("left"));
  return {
    over: ended,
    source: {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          try {
            const next = await events.next();
            if (next.done === true) end("read");
            return next;
          } catch (error) {
            end("left");
            throw error;
          }
        },
        return: async () => {
          end("left");
          return events.return();
        },
      }),
    },
  };
}
