import type { BaseEvent } from "@ag-ui/client";
import {
  concatMap,
  from,
  map,
  mergeAll,
  tap,
  type MonoTypeOperatorFunction,
  type ObservableInput,
  type OperatorFunction,
} from "rxjs";
import { unpackEntry } from "../../run/pack.js";
import type { PackedEntry } from "../../run/types.js";

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
    const taken = (event: BaseEvent): ObservableInput<T> => {
      const results = take(event);
      return "then" in results ? from(results).pipe(mergeAll()) : results;
    };
    return (events$) =>
      events$.pipe(
        map((event) => ({ event, cuts: this.#cutsBehind(event) })),
        concatMap(({ event, cuts }) =>
          cuts !== undefined && isWanted(event)
            ? from(unpackEntry({ event, cuts })).pipe(concatMap(taken))
            : taken(event),
        ),
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
