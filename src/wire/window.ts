import { chunkSize, sizeOf } from "../run/size.js";
import type { ModelFrame } from "./model-frames.js";
import type { RelayFrame } from "./relay.js";
import type { Frame } from "./shapes.js";

/** How many frames a host sends ahead of what the tab has consumed (L14). */
export const WINDOW_FRAMES = 32;
/** Their size (see `sizeOf`); a single frame may be larger. Together: the most that a frozen tab costs. */
export const WINDOW_SIZE = 256 * 1_024;

/** What is sent with credit. */
export type SentFrame = Frame | RelayFrame | ModelFrame;

/** A chunk was weighed for other readers. Otherwise the sum stops at the window: a frame that is larger goes alone anyway. */
const sizeOfFrame = (frame: SentFrame): number =>
  frame.type === "chunk" && frame.base === undefined ? chunkSize(frame.chunk) : sizeOf(frame, WINDOW_SIZE);

/** What the host has sent and the tab not yet consumed. */
export class SendWindow {
  private readonly sizes: number[] = [];
  private size = 0;
  private refill: (() => void) | undefined;

  get isOpen(): boolean {
    // L14: a reader that does not read costs one window.
    return this.sizes.length < WINDOW_FRAMES && this.size < WINDOW_SIZE;
  }

  sent(frame: SentFrame): void {
    const size = sizeOfFrame(frame);
    this.sizes.push(size);
    this.size += size;
  }

  /** @param frames what a tab says that it has consumed, which may be anything */
  consumed(frames: unknown): void {
    // No number takes more than there are, or adds any.
    if (typeof frames === "number") for (const size of this.sizes.splice(0, frames)) this.size -= size;
    this.wake();
  }

  /** Resolves at the next {@link consumed} or {@link wake}. */
  async refilled(): Promise<void> {
    await new Promise<void>((resolve) => (this.refill = resolve));
  }

  wake(): void {
    this.refill?.();
    this.refill = undefined;
  }
}

/** What the tab has consumed and not yet reported. */
export class ConsumedFrames {
  private frames = 0;
  private size = 0;

  /** @returns how many to report now; 0: none yet. Half a window at a time, so that the host never waits for it */
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
