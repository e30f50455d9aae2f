import { chunkSize, sizeOf } from "../run/size.js";
import type { ModelFrame } from "./model-frames.js";
import type { RelayFrame } from "./relay.js";
import type { Frame } from "./shapes.js";

/** Credit in frames: how far a host sends ahead of what the tab has consumed (L14). */
export const WINDOW_FRAMES = 32;
/** Credit in bytes (see `sizeOf`); a single frame may be larger. The two bound the memory that a frozen tab costs. */
export const WINDOW_SIZE = 256 * 1_024;

/** What is sent with credit. */
export type SentFrame = Frame | RelayFrame | ModelFrame;

/** The size of a chunk is cached. For others the sum stops at the window: a larger frame is sent alone anyway. */
const sizeOfFrame = (frame: SentFrame): number =>
  frame.type === "chunk" && frame.base === undefined ? chunkSize(frame.chunk) : sizeOf(frame, WINDOW_SIZE);

/** The frames that the host has sent and the tab has not yet consumed. */
export class SendWindow {
  private readonly sizes: number[] = [];
  private size = 0;
  private refill: (() => void) | undefined;

  private get isOpen(): boolean {
    // L14: a reader that does not read costs at most one window.
    return this.sizes.length < WINDOW_FRAMES && this.size < WINDOW_SIZE;
  }

  sent(frame: SentFrame): void {
    const size = sizeOfFrame(frame);
    this.sizes.push(size);
    this.size += size;
  }

  /** @param frames how many frames the tab claims to have consumed; not trusted */
  consumed(frames: unknown): void {
    // `splice` is safe for every number: it removes at most the frames that exist.
    if (typeof frames === "number") for (const size of this.sizes.splice(0, frames)) this.size -= size;
    this.wake();
  }

  /** Resolves with true when a frame may be sent; with false when `gone` has aborted, at the next {@link wake}. */
  async opens(gone: AbortSignal): Promise<boolean> {
    while (!this.isOpen && !gone.aborted) await new Promise<void>((resolve) => (this.refill = resolve));
    return !gone.aborted;
  }

  wake(): void {
    this.refill?.();
    this.refill = undefined;
  }
}

/**
 * A window that the reader at the other end of the port refills.
 *
 * @param word what the reader sends when it wants no more; then `leave` is called
 */
export function windowOn(port: MessagePort, word: "abort" | "detach", leave: () => void): SendWindow {
  const window = new SendWindow();
  port.onmessage = ({ data }: MessageEvent<unknown>) => {
    // Not trusted: each field is checked where it is used.
    const control = data as { readonly type?: unknown; readonly frames?: unknown } | null;
    if (control?.type === "credit") window.consumed(control.frames);
    else if (control?.type === word) leave();
  };
  return window;
}

/** The frames that the tab has consumed and not yet reported. */
export class ConsumedFrames {
  private frames = 0;
  private size = 0;

  /** @returns how many to report now, 0 for none. Half a window at a time, so that the host need not wait for credit */
  add(frame: SentFrame): number {
    this.frames++;
    this.size += sizeOfFrame(frame);
    if (this.frames < WINDOW_FRAMES / 2 && this.size < WINDOW_SIZE / 2) return 0;
    const { frames } = this;
    this.frames = 0;
    this.size = 0;
    return frames;
  }
}
