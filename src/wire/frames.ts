import type { BaseEvent } from "@ag-ui/client";
import { Observable } from "rxjs";
import { abortWith } from "../platform/abort.js";
import { fromErrorData, toErrorData } from "./errors.js";
import type { AttachControl, Frame } from "./shapes.js";
import { ConsumedFrames, SendWindow } from "./window.js";

/**
 * Sends frames over a port, at most one window ahead of the tab (L14). A frame is created only when it can be sent; the
 * rest stays in the log.
 *
 * @param signal ends the sending
 * @returns resolves when everything is sent, the tab has detached or `signal` has aborted
 */
export async function sendFrames(
  port: MessagePort,
  open: (signal: AbortSignal) => AsyncGenerator<Frame, void>,
  signal: AbortSignal,
): Promise<void> {
  const ended = abortWith(signal);
  const either = ended.signal;
  const window = new SendWindow();
  port.onmessage = (event: MessageEvent<unknown>) => {
    // Not trusted: each field is checked where it is used.
    const control = event.data as { readonly type?: unknown; readonly frames?: unknown } | null;
    if (control?.type === "credit") window.consumed(control.frames);
    else if (control?.type === "detach") ended.abort();
  };
  either.addEventListener("abort", () => window.wake(), { once: true });
  let frames: AsyncGenerator<Frame, void> | undefined;
  try {
    frames = open(either);
    for (;;) {
      while (!window.isOpen && !either.aborted) await window.refilled();
      if (either.aborted) return;
      const next = await frames.next();
      if (next.done === true || either.aborted) return;
      window.sent(next.value);
      port.postMessage(next.value);
    }
  } catch (error) {
    if (!either.aborted) port.postMessage({ type: "error", error: toErrorData(error) } satisfies Frame);
  } finally {
    ended.abort();
    port.onmessage = null;
    // Frames already posted are still delivered.
    port.close();
    // Nobody is left to report a failure to.
    frames?.return().catch(() => undefined);
  }
}

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
