import { abortWith } from "../../platform/abort.js";
import { Bell } from "../../platform/bell.js";
import { systemClock, type Clock } from "../../platform/clock.js";
import { tabModelsKey } from "../../platform/names.js";
import { realmWide } from "../../platform/realm.js";
import { RunnerError } from "../../run/errors.js";
import type { ModelCall, ModelOffer, ModelPart } from "../../wire/model-frames.js";
import { JoinedAnswer } from "./joined-answer.js";
import { TabOffer } from "./tab-offer.js";

/** How often an answer is moved to another tab. */
const MAX_MOVES = 3;

/** What an offer is chosen by. */
export interface Choice {
  readonly visible: boolean;
  readonly requests: number;
}

/**
 * The offer that a request goes to: a visible tab before a hidden one, which browsers slow down and freeze; then the one
 * that runs the fewest requests; then the one that was made first.
 *
 * @param offers in the order in which they were made
 */
export const chooseOffer = <O extends Choice>(offers: readonly O[]): O | undefined =>
  offers.toSorted((a, b) => Number(b.visible) - Number(a.visible) || a.requests - b.requests)[0];

/** A call of a model that tabs run. */
export interface TabModelRequest {
  readonly model: string;
  readonly call: ModelCall;
  /** How long it waits for a tab, each time that it needs one, in ms. */
  readonly waitMs: number;
  /** Ends it; the tab's model is stopped. */
  readonly signal: AbortSignal;
}

/** The language models that the tabs of this process's hosts offer. */
export class TabModels {
  private readonly offers = new Set<TabOffer>();
  private readonly changed = new Bell();

  constructor(private readonly clock: Clock = systemClock) {}

  /**
   * Takes a tab's offer.
   *
   * @param gone aborts when the tab is gone
   */
  offer(offer: ModelOffer, port: MessagePort, gone: AbortSignal): void {
    const made = new TabOffer(offer, port, gone, this.clock, () => this.changed.ring());
    if (made.over.aborted) return;
    this.offers.add(made);
    made.over.addEventListener("abort", () => this.offers.delete(made), { once: true });
    this.changed.ring();
  }

  /**
   * The parts of an answer. When the tab that gives it is lost, it is moved to another one, at most {@link MAX_MOVES} times:
   * asked for anew while there is no text; behind a text, a tab that offers to continue goes on.
   *
   * Errors: RunnerError `provider-unavailable` where no tab offers the model in time, or the answer cannot be moved; that
   * of the model; the signal's reason.
   */
  async *answer(request: TabModelRequest): AsyncGenerator<ModelPart, void> {
    const { call, signal } = request;
    const joined = new JoinedAnswer(call);
    const lost = new Set<TabOffer>();
    for (;;) {
      const isFit = (one: TabOffer): boolean => !lost.has(one) && (one.continues || !joined.needsContinuing);
      const offer = await this.chosen(request, isFit);
      if (offer === undefined) throw this.unavailable(request, joined, lost.size);
      // By hand: `for await` drops how it ended.
      const parts = offer.answer(joined.next(), signal);
      try {
        for (;;) {
          const { done, value } = await parts.next();
          if (done !== true) yield* joined.take(value);
          else if (value === "ended" || joined.isFinished) return;
          else break;
        }
      } finally {
        await parts.return("lost");
      }
      // A tab that falls silent is not asked the same again, and a question that ends every page is not handed on for ever.
      lost.add(offer);
      if (lost.size > MAX_MOVES || !joined.mayMove) throw this.unavailable(request, joined, lost.size);
    }
  }

  /** The best offer that fits, once there is one; undefined if none comes within `waitMs`. Errors: the signal's reason. */
  private async chosen(
    { model, waitMs, signal }: TabModelRequest,
    isFit: (offer: TabOffer) => boolean,
  ): Promise<TabOffer | undefined> {
    const waiting = abortWith(signal);
    const tooLong = this.clock.after(waitMs, waiting.signal).then(() => waiting.abort());
    try {
      for (;;) {
        if (signal.aborted) throw signal.reason;
        const seen = this.changed.count;
        const fit = [...this.offers].filter((one) => one.model === model && !one.isSilent && isFit(one));
        const found = chooseOffer(fit);
        if (found !== undefined) return found;
        if (waiting.signal.aborted) return undefined;
        await this.changed.wait(seen, waiting.signal);
      }
    } finally {
      waiting.abort();
      await tooLong;
    }
  }

  /** @param lost how many tabs were lost with the request */
  private unavailable({ model, waitMs }: TabModelRequest, { hasBegun }: JoinedAnswer, lost: number): RunnerError {
    let message = `No tab has offered the model "${model}" for ${waitMs} ms: open a tab that offers it, and run again`;
    if (hasBegun) {
      message = `The tab that ran the model "${model}" is gone, and no other one can go on with its answer: run it again`;
    } else if (lost > 0) {
      message = `${lost} of the tabs that offer the model "${model}" were asked, and are gone or did not answer: run it again`;
    }
    return new RunnerError("provider-unavailable", { model, delivered: hasBegun }, { message });
  }
}

/** The models of this process: for the host, and for the models of agents, which may be in a bundle of their own. */
export const tabModels = (): TabModels => realmWide(tabModelsKey, () => new TabModels());
