import type { BaseEvent } from "@ag-ui/client";
import { map, Observable, type Subscribable } from "rxjs";
import { RunnerError } from "../run/errors.js";
import { mustBeEvent } from "../runner/agent/valid-stream.js";

/**
 * The events of a third-party runner. CopilotKit's runtime awaits what `run` and `connect` return, so a Promise of
 * the Observable counts as well.
 *
 * @returns an Observable that errors if the source emits a non-event or throws on subscribe
 * Errors: what a Promise rejects with; RunnerError `host-failed` if it is not an Observable.
 */
export async function foreignEvents(given: unknown): Promise<Observable<BaseEvent>> {
  const source = (await given) as Partial<Subscribable<unknown>> | null | undefined;
  if (typeof source?.subscribe !== "function") {
    throw new RunnerError("host-failed", { field: "runner" }, { message: "The runner returned no Observable" });
  }
  // It may come from another copy of rxjs, which throws differently.
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
