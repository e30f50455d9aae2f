import { Observable, type OperatorFunction } from "rxjs";

/**
 * Like `concatMap`, for work that is mostly synchronous. `concatMap` calls itself for each queued value, so a few
 * thousand overflow the stack.
 *
 * @param work is called for one value at a time; returns a promise if the next value has to wait
 */
export const inTurn =
  <A, B>(work: (value: A, emit: (result: B) => void) => Promise<void> | void): OperatorFunction<A, B> =>
  (values$) =>
    new Observable((subscriber) => {
      let waiting: A[] = [];
      let at = 0;
      let isWorking = false;
      let isLast = false;
      const emit = (result: B): void => subscriber.next(result);
      const fail = (error: unknown): void => subscriber.error(error);
      const goOn = (): void => {
        isWorking = true;
        try {
          while (at < waiting.length && !subscriber.closed) {
            const left = work(waiting[at++]!, emit);
            if (left !== undefined) return void left.then(goOn, fail);
          }
        } catch (error) {
          return fail(error);
        }
        isWorking = false;
        waiting = [];
        at = 0;
        if (isLast) subscriber.complete();
      };
      return values$.subscribe({
        next: (value) => {
          waiting.push(value);
          if (!isWorking) goOn();
        },
        error: fail,
        complete: () => {
          isLast = true;
          if (!isWorking) goOn();
        },
      });
    });
