import type { BaseEvent } from "@ag-ui/client";
import { Observable } from "rxjs";
import { fromErrorData } from "./errors.js";
import type { AttachControl, Frame } from "./shapes.js";
import { ConsumedFrames } from "./window.js";

/**
 * The frames that arrive on a port; it keeps those that come before the subscription. Unsubscribing detaches. Errors with
 * RunnerError.
 *
 * @param lost aborts when the host is gone, which no port reports
 */
export const receiveFrames = (port: MessagePort, lost: AbortSignal): Observable<Frame> =>
  new Observable((subscriber) => {
    const consumed = new ConsumedFrames();
    port.onmessage = ({ data: frame }: MessageEvent<unknown>) => {
      if (!isFrame(frame)) return;
      if (frame.type === "error") return subscriber.error(fromErrorData(frame.error));
      if (frame.type === "end") return subscriber.complete();
      subscriber.next(frame);
      const told = consumed.add(frame);
      if (told > 0) port.postMessage({ type: "credit", frames: told } satisfies AttachControl);
    };
    const fail = (): void => subscriber.error(lost.reason);
    if (lost.aborted) fail();
    else lost.addEventListener("abort", fail, { once: true });
    return () => {
      lost.removeEventListener("abort", fail);
      port.onmessage = null;
      port.postMessage({ type: "detach" } satisfies AttachControl);
      port.close();
    };
  });

/** The events of a frame, with merged deltas; empty for frames without events. */
export function eventsOfFrame(frame: Frame): readonly BaseEvent[] {
  if (frame.type === "prelude") return frame.events;
  if (frame.type !== "chunk") return [];
  const events = frame.chunk.entries.map(({ event }) => event);
  return withBase(frame.base, events);
}

/** The events of a chunk, with its frame's `base` inserted after the first one. */
export function withBase<T>(base: readonly T[] = [], events: readonly T[]): readonly T[] {
  return base.length === 0 ? events : [...events.slice(0, 1), ...base, ...events.slice(1)];
}

/** One of a type that this build does not know, too: it is passed over, and counts as consumed. */
const isFrame = (data: unknown): data is Frame => typeof (data as { type?: unknown } | null)?.type === "string";
