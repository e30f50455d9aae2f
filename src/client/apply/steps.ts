/** Work that says where it has to wait: what it yields comes back once it is there, or is thrown. */
export type Steps<T> = Generator<unknown, T, unknown>;

const isPromise = (value: unknown): value is Promise<unknown> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === "function";

/** Does the steps: at once, as far as nothing has to be waited for. A wait for each event is most of what it costs. */
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
