import type { BaseEvent } from "@ag-ui/client";
import { Observable } from "rxjs";
import { fromErrorData } from "./errors.js";
import type { AttachControl, Frame } from "./shapes.js";
import { ConsumedFrames } from "./window.js";

/**
 * The frames that arrive on a port from the call on, not only from the subscription: so call it before the other end is
 * transferred. Unsubscribing detaches. Errors with RunnerError.
 *
 * @param lost aborts when the host is gone, which no port reports
 */
export function receiveFrames(port: MessagePort, lost: AbortSignal): Observable<Frame> {
  const early: Frame[] = [];
  let deliver = (frame: Frame): void => void early.push(frame);
  port.onmessage = (event: MessageEvent<unknown>) => {
    if (isFrame(event.data)) deliver(event.data);
  };
  return new Observable((subscriber) => {
    const consumed = new ConsumedFrames();
    const detach = (): void => {
      lost.removeEventListener("abort", fail);
      port.onmessage = null;
      port.postMessage({ type: "detach" } satisfies AttachControl);
      port.close();
    };
    const fail = (): void => subscriber.error(lost.reason);
    deliver = (frame) => {
      if (frame.type === "error") return subscriber.error(fromErrorData(frame.error));
      if (frame.type === "end") return subscriber.complete();
      subscriber.next(frame);
      const told = consumed.add(frame);
      if (told > 0) port.postMessage({ type: "credit", frames: told } satisfies AttachControl);
    };
    early.splice(0).forEach(deliver);
    if (lost.aborted) fail();
    else lost.addEventListener("abort", fail, { once: true });
    return detach;
  });
}

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

const FRAME_TYPES: ReadonlySet<unknown> = new Set<Frame["type"]>([
  "prelude",
  "chunk",
  "run",
  "settled",
  "lost",
  "recovery",
  "idle",
  "end",
  "error",
]);

function isFrame(data: unknown): data is Frame {
  return typeof data === "object" && data !== null && FRAME_TYPES.has((data as { type?: unknown }).type);
}
