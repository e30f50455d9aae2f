import { abortWith, onAbort } from "../platform/abort.js";
import { toErrorData } from "./errors.js";
import type { Frame } from "./shapes.js";
import { windowOn, type SentFrame } from "./window.js";

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
  const window = windowOn(port, "detach", () => ended.abort());
  onAbort(either, () => window.wake());
  let frames: AsyncGenerator<F, void> | undefined;
  try {
    frames = open(either);
    while (await window.opens(either)) {
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
