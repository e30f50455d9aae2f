import { abortWith, onAbort } from "../../platform/abort.js";
import { Bell, ringOrSilence } from "../../platform/bell.js";
import type { Clock } from "../../platform/clock.js";
import { RunnerError } from "../../run/errors.js";
import { fromErrorData } from "../../wire/errors.js";
import {
  checkModelFrame,
  isKnownPart,
  sizeOfModelFrame,
  type ModelCall,
  type ModelFrame,
  type ModelOffer,
  type ModelPart,
  type OfferOrder,
} from "../../wire/model-frames.js";
import type { AttachControl } from "../../wire/shapes.js";
import { ConsumedFrames, WINDOW_FRAMES, WINDOW_SIZE } from "../../wire/window.js";

/** A tab that runs a request and says nothing for so long is asked whether it is there, in ms. */
const SILENCE_MS = 10_000;
/** A tab that does not answer that for so long is frozen or hangs, in ms. Compiling a model may block a page for seconds. */
const ANSWER_MS = 5_000;

/** A tab's offer to run a model, as the host knows it. */
export class TabOffer {
  readonly model: string;
  readonly continues: boolean;
  visible: boolean;
  /** It did not answer; true until it says something. */
  isSilent = false;
  /** How many requests it runs. */
  requests = 0;
  /** Aborts when the offer is over. */
  readonly over: AbortSignal;
  private readonly heard = new Bell();

  /**
   * @param port whose other end the tab has
   * @param gone aborts when the tab is gone
   * @param changed called when it may be chosen otherwise than before
   */
  constructor(
    { model, continues, visible }: ModelOffer,
    private readonly port: MessagePort,
    gone: AbortSignal,
    private readonly clock: Clock,
    changed: () => void,
  ) {
    this.model = model;
    this.continues = continues;
    this.visible = visible;
    const ended = abortWith(gone);
    this.over = ended.signal;
    port.onmessage = ({ data }: MessageEvent<unknown>) => {
      // Not trusted: a tab may post anything.
      const news = data as { readonly type?: unknown; readonly visible?: unknown } | "end" | null;
      if (news === "end") return ended.abort();
      if (news?.type === "visible" && typeof news.visible === "boolean") this.visible = news.visible;
      this.isSilent = false;
      this.heard.ring();
      changed();
    };
    onAbort(this.over, () => {
      port.onmessage = null;
      port.close();
      changed();
    });
  }

  /**
   * Has the tab answer a call.
   *
   * @param signal ends it; the tab's model is stopped
   * @returns `ended`: the model has said everything; `lost`: the tab is gone, its offer is over, or it is frozen.
   *   Errors: RunnerError of the model, or `host-failed` for a tab that breaks the protocol
   */
  async *answer(call: ModelCall, signal: AbortSignal): AsyncGenerator<ModelPart, "ended" | "lost"> {
    const { over } = this;
    const { port1, port2 } = new MessageChannel();
    const either = abortWith(signal, over);
    const bell = new Bell();
    const received = new ReceivedFrames();
    const consumed = new ConsumedFrames();
    port1.onmessage = ({ data }: MessageEvent<unknown>) => {
      received.add(data);
      bell.ring();
    };
    this.requests++;
    try {
      // First: a call that cannot be cloned is told to who made it.
      this.order({ type: "request", call, port: port2 }, [port2]);
      // Messages of one port keep their order: who answers has the request.
      if (!(await this.isThere(either.signal))) return this.lost(signal);
      void this.untilSilent(bell, either.signal).then(() => either.abort());
      for (;;) {
        const seen = bell.count;
        const frame = received.next();
        if (frame?.type === "end") return "ended";
        if (frame?.type === "error") throw fromErrorData(frame.error);
        if (frame !== undefined) {
          // A part of a later version is left out; it took its credit all the same.
          if (isKnownPart(frame.part)) yield frame.part;
          const told = consumed.add(frame);
          if (told > 0) port1.postMessage({ type: "credit", frames: told } satisfies AttachControl);
          continue;
        }
        if (either.signal.aborted) return this.lost(signal);
        await bell.wait(seen, either.signal);
      }
    } finally {
      this.requests--;
      either.abort();
      port1.onmessage = null;
      port1.postMessage({ type: "detach" } satisfies AttachControl);
      port1.close();
    }
  }

  /** @throws why the reader has left */
  private lost(signal: AbortSignal): "lost" {
    if (signal.aborted) throw signal.reason;
    return "lost";
  }

  /** Resolves when the tab has said nothing for a while and does not answer; and when `signal` aborts. */
  private async untilSilent(bell: Bell, signal: AbortSignal): Promise<void> {
    for (;;) {
      const seen = bell.count;
      await this.clock.after(SILENCE_MS, signal);
      if (signal.aborted || (bell.count === seen && !(await this.isThere(signal)))) return;
    }
  }

  /** Whether the tab answers. */
  private async isThere(signal: AbortSignal): Promise<boolean> {
    const seen = this.heard.count;
    this.order({ type: "ping" });
    if (await ringOrSilence(this.heard, seen, this.clock, ANSWER_MS, signal)) return !signal.aborted;
    this.isSilent ||= !signal.aborted;
    return false;
  }

  private order(order: OfferOrder, transfer: Transferable[] = []): void {
    this.port.postMessage(order, transfer);
  }
}

/** What a tab has posted and nobody has consumed. */
class ReceivedFrames {
  private readonly waiting: { readonly data: unknown; readonly size: number }[] = [];
  private size = 0;
  private isTooMuch = false;

  add(data: unknown): void {
    // L14, L19: it has credit for a window; what it sends beyond that costs nothing more.
    this.isTooMuch ||= this.waiting.length >= WINDOW_FRAMES || this.size >= WINDOW_SIZE;
    if (this.isTooMuch) return;
    const size = sizeOfModelFrame(data);
    this.size += size;
    this.waiting.push({ data, size });
  }

  /** @throws RunnerError `host-failed` for what is no frame, and where more came than the tab had credit for */
  next(): ModelFrame | undefined {
    const first = this.waiting.shift();
    if (first !== undefined) {
      this.size -= first.size;
      return checkModelFrame(first.data, first.size);
    }
    if (!this.isTooMuch) return undefined;
    const message = "A tab that runs a language model sent more than it had credit for";
    throw new RunnerError("host-failed", {}, { message });
  }
}
