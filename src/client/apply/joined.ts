import type { BaseEvent } from "@ag-ui/client";
import { map, tap, type MonoTypeOperatorFunction, type OperatorFunction } from "rxjs";
import { unpackEntry } from "../../run/pack.js";
import type { PackedEntry } from "../../run/types.js";
import { inTurn } from "../in-turn.js";
import { done, type Steps } from "./steps.js";

/**
 * Joined deltas on their way through a pipeline of the client: one event to all of it, and as many as the agent emitted
 * to whoever wants each.
 */
export class JoinedDeltas {
  readonly #cuts = new WeakMap<BaseEvent, readonly number[]>();
  /** The event that is on its way, where it is joined. */
  #passing: PackedEntry | undefined;

  note({ event, cuts }: PackedEntry): void {
    if (cuts !== undefined) this.#cuts.set(event, cuts);
  }

  /** The events of an event, each as it was given. */
  eventsOf(event: BaseEvent): readonly BaseEvent[] {
    const cuts = this.#cuts.get(event);
    return cuts === undefined ? [event] : unpackEntry({ event, cuts });
  }

  /** To stand before the stages of the pipeline, none of which holds an event back: they do copy it. */
  before(): MonoTypeOperatorFunction<BaseEvent> {
    return tap((event) => {
      const cuts = this.#cuts.get(event);
      this.#passing = cuts && { event, cuts };
    });
  }

  /**
   * To stand behind them.
   *
   * @param isWanted an event is wanted as those that it was made of; asked when its turn has come
   * @param take is called with one event at a time
   */
  behind<T>(
    isWanted: (event: BaseEvent) => boolean,
    take: (event: BaseEvent) => readonly T[] | Promise<readonly T[]>,
  ): OperatorFunction<BaseEvent, T> {
    function* taken(event: BaseEvent, cuts: PackedEntry["cuts"], emit: (result: T) => void): Steps<void> {
      for (const one of cuts !== undefined && isWanted(event) ? unpackEntry({ event, cuts }) : [event]) {
        const results = (yield take(one)) as readonly T[]; // what a step waits for comes back
        results.forEach(emit);
      }
    }
    return (events$) =>
      events$.pipe(
        map((event) => ({ event, cuts: this.#cutsBehind(event) })),
        inTurn(({ event, cuts }, emit: (result: T) => void) => done(taken(event, cuts, emit))),
      );
  }

  /** Where a middleware or a stage made another event of it, it is nothing that was joined. */
  #cutsBehind(event: BaseEvent): readonly number[] | undefined {
    const passing = this.#passing;
    const isIt =
      passing !== undefined && event.type === passing.event.type && event["delta"] === passing.event["delta"];
    return isIt ? passing.cuts : undefined;
  }
}
