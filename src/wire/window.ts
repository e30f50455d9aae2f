import { sizeOf } from "../run/size.js";

/** Frames that a host sends ahead of what the tab has consumed. */
export const WINDOW_FRAMES = 32;
/** Their size (see `sizeOf`); one frame is sent however large it is. With the frames: what a frozen tab costs at most. */
export const WINDOW_SIZE = 256 * 1_024;

/** A frame of more than the window is no larger than a whole window: none goes beside it. */
const sizeOfFrame = (frame: object): number => sizeOf(frame, WINDOW_SIZE);

/** What the host has sent and the tab not yet consumed. */
export class SendWindow {
  private readonly sizes: number[] = [];
  private size = 0;

  get isOpen(): boolean {
    return this.sizes.length < WINDOW_FRAMES && this.size < WINDOW_SIZE;
  }

  sent(frame: object): void {
    const size = sizeOfFrame(frame);
    this.sizes.push(size);
    this.size += size;
  }

  /** @param frames what a tab says that it has consumed, which may be anything */
  consumed(frames: unknown): void {
    if (typeof frames !== "number") return;
    // No number takes more than there are, or adds any.
    for (const size of this.sizes.splice(0, frames)) this.size -= size;
  }
}

/** What the tab has consumed and not yet told. */
export class ConsumedFrames {
  private frames = 0;
  private size = 0;

  /** @returns how many to tell now; 0: none yet. Told in halves of the window, so that the host never waits for it */
  add(frame: object): number {
    this.frames++;
    this.size += sizeOfFrame(frame);
    if (this.frames < WINDOW_FRAMES / 2 && this.size < WINDOW_SIZE / 2) return 0;
    const { frames } = this;
    this.frames = 0;
    this.size = 0;
    return frames;
  }
}
