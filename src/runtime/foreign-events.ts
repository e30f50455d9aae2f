import type { BaseEvent } from "@ag-ui/client";
import { map, Observable, type Subscribable } from "rxjs";
import { RunnerError } from "../run/errors.js";
import { mustBeEvent } from "../runner/agent/lifecycle.js";

/**
 * The events of a runner of another make. CopilotKit's runtime awaits what `run` and `connect` return, so a Promise of
 * the Observable counts as well.
 *
 * @returns an Observable that ends with an error where it emits what is no event, or throws when it is subscribed to
 * Errors: what a Promise rejects with; RunnerError `host-failed` for what is no Observable.
 */
export async function foreignEvents(given: unknown): Promise<Observable<BaseEvent>> {
  const source = (await given) as Partial<Subscribable<unknown>> | null | undefined;
  if (typeof source?.subscribe !== "function") {
    throw new RunnerError("host-failed", { field: "runner" }, { message: "The runner returned no Observable" });
  }
  // It may be of another copy of rxjs, which throws in its own way.
  const events$ = new Observable<unknown>((subscriber) => {
    const next = (event: unknown): void => subscriber.next(event);
    const error = (thrown: unknown): void => subscriber.error(thrown);
    const subscription = source.subscribe!({ next, error, complete: () => subscriber.complete() });
    return () => subscription?.unsubscribe?.();
  });
  return events$.pipe(
    map((event, position) => {
      mustBeEvent(event, position);
      return event;
    }),
  );
}
