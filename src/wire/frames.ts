import type { BaseEvent } from "@ag-ui/client";
import { Observable } from "rxjs";
import { fromErrorData, toErrorData } from "./errors.js";
import type { AttachControl, Frame } from "./shapes.js";

/** Frames that a host sends ahead of what the tab has consumed: what a frozen tab costs at most. */
const WINDOW = 32;

/**
 * Sends frames over a port, never more than a window ahead of the tab. What the tab does not take stays in the log.
 *
 * @param signal ends the sending
 * @returns resolves when all is sent, the tab detached or `signal` aborted
 */
export async function sendFrames(
  port: MessagePort,
  open: (signal: AbortSignal) => AsyncGenerator<Frame, void>,
  signal: AbortSignal,
): Promise<void> {
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);
  let credit = WINDOW;
  let refill: (() => void) | undefined;
  const wake = (): void => {
    refill?.();
    refill = undefined;
  };
  port.onmessage = (event: MessageEvent<unknown>) => {
    const control = event.data as AttachControl | null;
    if (control?.type === "credit" && Number.isSafeInteger(control.frames) && control.frames > 0) {
      credit = Math.min(WINDOW, credit + control.frames);
      wake();
    } else if (control?.type === "detach") ended.abort();
  };
  either.addEventListener("abort", wake, { once: true });
  try {
    for await (const frame of open(either)) {
      if (credit === 0) await new Promise<void>((resolve) => (refill = resolve));
      if (either.aborted) return;
      credit--;
      port.postMessage(frame);
    }
  } catch (error) {
    if (!either.aborted) port.postMessage({ type: "error", error: toErrorData(error) } satisfies Frame);
  } finally {
    ended.abort();
    port.onmessage = null;
    // Frames already posted are still delivered.
    port.close();
  }
}

/**
 * The frames that come on a port, from the moment of the call (not of the subscription): hand the other end over after
 * it. Unsubscribing detaches. Errors with RunnerError.
 *
 * @param lost rejects when the host is gone, which no port tells
 */
export function receiveFrames(port: MessagePort, lost: AbortSignal): Observable<Frame> {
  const early: Frame[] = [];
  let deliver = (frame: Frame): void => void early.push(frame);
  port.onmessage = (event: MessageEvent<unknown>) => {
    if (isFrame(event.data)) deliver(event.data);
  };
  return new Observable((subscriber) => {
    let consumed = 0;
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
      if (++consumed < WINDOW / 2) return;
      port.postMessage({ type: "credit", frames: consumed } satisfies AttachControl);
      consumed = 0;
    };
    early.splice(0).forEach(deliver);
    if (lost.aborted) fail();
    else lost.addEventListener("abort", fail, { once: true });
    return detach;
  });
}

/** The events of a frame, deltas joined; none where it tells something else. */
export const eventsOfFrame = (frame: Frame): readonly BaseEvent[] =>
  frame.type === "prelude" ? frame.events : frame.type === "chunk" ? frame.chunk.entries.map(({ event }) => event) : [];

const FRAME_TYPES: ReadonlySet<unknown> = new Set<Frame["type"]>([
  "prelude",
  "chunk",
  "run",
  "settled",
  "idle",
  "end",
  "error",
]);

function isFrame(data: unknown): data is Frame {
  return typeof data === "object" && data !== null && FRAME_TYPES.has((data as { type?: unknown }).type);
}
