import type { Bench } from "./bench.js";

/**
 * `core`: needs only a run's own request and its own events: a lock per thread, RUN_STARTED with the request, one log
 * of events per run, open constructs closed, one terminal event, replay in order. `full`: needs a runner that folds
 * the thread (state, messages, branches), remembers requests, records how runs ended, or has reads beyond the
 * contract.
 */
export type Level = "core" | "full";

/** One case of the suite. */
export interface ConformanceCase<Id extends string = string> {
  readonly id: Id;
  readonly level: Level;
  readonly title: string;
  /** What a runner must do, as a sentence. */
  readonly says: string;
  /** The option of `describeAgentRunner` that it needs. */
  readonly needs?: "reopen";
}

/** A case and its code. */
export interface RunnableCase<Id extends string = string> extends ConformanceCase<Id> {
  check(bench: Bench): Promise<void>;
}

/** Keeps the ids as literal types. */
export const cases = <const Id extends string>(list: readonly RunnableCase<Id>[]): readonly RunnableCase<Id>[] => list;
