import { abortWith, onAbort } from "../platform/abort.js";
import { toErrorData } from "./errors.js";
import type { Frame } from "./shapes.js";
import { SendWindow, type SentFrame } from "./window.js";

/**
 * Sends frames over a port, at most a window ahead of their reader (L14). No frame is made before it can be sent: what the
 * tab does not take stays in the log.
 *
 * @param signal ends the sending
 * @returns resolves when everything is sent, the tab has detached or `signal` has aborted
 */
export async function sendFrames<F extends SentFrame>(
  port: MessagePort,
  open: (signal: AbortSignal) => AsyncGenerator<F, void>,
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
  onAbort(either, () => window.wake());
  let frames: AsyncGenerator<F, void> | undefined;
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
    // Nobody is left to hear of a failure.
    frames?.return().catch(() => undefined);
  }
}
