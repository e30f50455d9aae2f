/** Work that waits only where it must: what it yields comes back, awaited if it is a promise, or is thrown. */
export type Steps<T> = Generator<unknown, T, unknown>;

const isPromise = (value: unknown): value is Promise<unknown> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === "function";

/** Does the steps, synchronously unless a promise is yielded: awaiting each event is most of its cost. */
export function done<T>(steps: Steps<T>): T | Promise<T> {
  const goOn = (step: IteratorResult<unknown, T>): T | Promise<T> => {
    let now = step;
    while (now.done !== true) {
      if (isPromise(now.value)) {
        return now.value.then(
          (value) => goOn(steps.next(value)),
          (error: unknown) => goOn(steps.throw(error)),
        );
      }
      now = steps.next(now.value);
    }
    return now.value;
  };
  return goOn(steps.next());
}
