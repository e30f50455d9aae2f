import { onTestFinished } from "vitest";
import { RunnerError } from "../../../../src/run/errors.js";
import { TabModels } from "../../../../src/runtime/models/tab-models.js";
import type { ModelCall, ModelFrame, ModelOffer, ModelPart, OfferOrder } from "../../../../src/wire/model-frames.js";
import { sendFrames } from "../../../../src/wire/send-frames.js";
import { DrivenClock } from "../../lock/driven-clock.js";

export const CALL: ModelCall = { prompt: [{ role: "user", content: [{ type: "text", text: "Hello" }] }] };

export const start: ModelPart = { type: "stream-start", warnings: [] };
export const textStart = (id = "0"): ModelPart => ({ type: "text-start", id });
export const textEnd = (id = "0"): ModelPart => ({ type: "text-end", id });
export const delta = (text: string, id = "0"): ModelPart => ({ type: "text-delta", id, delta: text });
const tokens = { total: 1 };
export const finish: ModelPart = {
  type: "finish",
  finishReason: { unified: "stop", raw: undefined },
  usage: { inputTokens: tokens, outputTokens: tokens },
};
export const whole = (...texts: readonly string[]): readonly ModelPart[] => [
  start,
  textStart(),
  ...texts.map((text) => delta(text)),
  textEnd(),
  finish,
];

/** Until it is ended. */
export const forEver = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

/** What a tab's model says to a call. */
export type Says = (call: ModelCall, signal: AbortSignal) => AsyncGenerator<ModelPart, void>;

export async function* saying(parts: readonly ModelPart[]): AsyncGenerator<ModelPart, void> {
  yield* parts;
}

/** Tabs that offer models to a registry, by ports of this process. */
export class Tabs {
  readonly clock = new DrivenClock();
  readonly models = new TabModels(this.clock);

  /** A tab whose model says this. */
  open(says: Says, offer: Partial<ModelOffer> = {}): FakeTab {
    return new FakeTab(this.models, offer, (call, port, tab) => {
      async function* frames(signal: AbortSignal): AsyncGenerator<ModelFrame, void> {
        for await (const part of says(call, signal)) yield { type: "part", part };
        yield { type: "end" };
      }
      void sendFrames(port, frames, tab.gone.signal);
    });
  }

  /** A tab that does with a request's port what it wants. */
  openRaw(asked: (port: MessagePort) => void, offer: Partial<ModelOffer> = {}): FakeTab {
    return new FakeTab(this.models, offer, (_call, port) => asked(port));
  }

  /** A call of the model "m". */
  ask(given: { waitMs?: number; signal?: AbortSignal; call?: ModelCall; model?: string } = {}) {
    const ended = new AbortController();
    onTestFinished(() => ended.abort());
    const { waitMs = 1_000, signal = ended.signal, call = CALL, model = "m" } = given;
    return this.models.answer({ model, call, waitMs, signal });
  }
}

/** A tab that offers a model. */
export class FakeTab {
  readonly gone = new AbortController();
  readonly calls: ModelCall[] = [];
  /** How often it was asked for an answer, also while it was frozen. */
  orders = 0;
  /** Whether it answers nothing, like a page that is frozen. */
  isFrozen = false;
  readonly port: MessagePort;

  constructor(
    models: TabModels,
    offer: Partial<ModelOffer>,
    asked: (call: ModelCall, port: MessagePort, tab: FakeTab) => void,
  ) {
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    port1.onmessage = ({ data }: MessageEvent<OfferOrder>) => {
      if (data.type === "request") this.orders++;
      if (this.isFrozen) return;
      if (data.type === "ping") return port1.postMessage({ type: "pong" });
      this.calls.push(data.call);
      asked(data.call, data.port, this);
    };
    models.offer({ model: "m", continues: false, visible: true, ...offer }, port2, this.gone.signal);
    onTestFinished(() => {
      this.close();
      port1.close();
    });
  }

  /** The end of the tab. */
  close(): void {
    this.gone.abort();
  }
}

export async function all(parts: AsyncIterable<ModelPart>): Promise<ModelPart[]> {
  const came: ModelPart[] = [];
  for await (const part of parts) came.push(part);
  return came;
}

export const textOf = (parts: readonly ModelPart[]): string =>
  parts.map((part) => (part.type === "text-delta" ? String(part["delta"]) : "")).join("");

export async function errorOf(work: Promise<unknown>): Promise<RunnerError> {
  try {
    await work;
  } catch (error) {
    if (RunnerError.is(error)) return error;
    throw error;
  }
  throw new Error("it did not fail");
}
