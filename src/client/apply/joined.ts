import type { BaseEvent } from "@ag-ui/client";
import { map, tap, type MonoTypeOperatorFunction, type OperatorFunction } from "rxjs";
import { unpackEntry } from "../../run/pack.js";
import type { PackedEntry } from "../../run/types.js";
import { inTurn } from "../in-turn.js";
import { done, type Steps } from "./steps.js";

/**
 * Joined deltas in a pipeline of the client: a single event to the stages, and unpacked into the agent's events for
 * hooks that want each.
 */
export class JoinedDeltas {
  readonly #cuts = new WeakMap<BaseEvent, readonly number[]>();
  /** The event in the pipeline, if it is joined. */
  #passing: PackedEntry | undefined;

  note({ event, cuts }: PackedEntry): void {
    if (cuts !== undefined) this.#cuts.set(event, cuts);
  }

  /** The agent's events that an event was joined from. */
  eventsOf(event: BaseEvent): readonly BaseEvent[] {
    const cuts = this.#cuts.get(event);
    return cuts === undefined ? [event] : unpackEntry({ event, cuts });
  }

  /** Goes before the stages of the pipeline: they copy an event, but none delays it. */
  before(): MonoTypeOperatorFunction<BaseEvent> {
    return tap((event) => {
      const cuts = this.#cuts.get(event);
      this.#passing = cuts && { event, cuts };
    });
  }

  /**
   * Goes behind them.
   *
   * @param isWanted whether an event is wanted unpacked; called when it is its turn
   * @param take called with one event at a time
   */
  behind<T>(
    isWanted: (event: BaseEvent) => boolean,
    take: (event: BaseEvent) => readonly T[] | Promise<readonly T[]>,
  ): OperatorFunction<BaseEvent, T> {
    function* taken(event: BaseEvent, cuts: PackedEntry["cuts"], emit: (result: T) => void): Steps<void> {
      for (const one of cuts !== undefined && isWanted(event) ? unpackEntry({ event, cuts }) : [event]) {
        const results = (yield take(one)) as readonly T[]; // a step returns what it waited for
        results.forEach(emit);
      }
    }
    return (events$) =>
      events$.pipe(
        map((event) => ({ event, cuts: this.#cutsBehind(event) })),
        inTurn(({ event, cuts }, emit: (result: T) => void) => done(taken(event, cuts, emit))),
      );
  }

  /** None if a middleware or a stage made another event of it. */
  #cutsBehind(event: BaseEvent): readonly number[] | undefined {
    const passing = this.#passing;
    const isIt =
      passing !== undefined && event.type === passing.event.type && event["delta"] === passing.event["delta"];
    return isIt ? passing.cuts : undefined;
  }
}
