import { onAbort } from "./abort.js";
import { systemClock, type Clock } from "./clock.js";

/** What a language model of the AI SDK does, by what is used of it here. */
interface Streaming<O extends { readonly abortSignal?: AbortSignal | undefined }, R extends Streamed> {
  doStream(options: O): PromiseLike<R>;
}

interface Streamed {
  readonly stream: ReadableStream<unknown>;
}

/** A call that has not ended so long after it was stopped keeps the others waiting no longer (L13), in ms. */
const STOP_MS = 10_000;

/** By model: when the last of its calls is over. Whoever wraps one model twice has one queue. */
const lastOf = new WeakMap<object, Promise<void>>();

/**
 * The calls of a model one after the other, in the order in which they come, each until its stream is over. Models that run
 * in the browser mix up calls at the same time, or stop them all when one is stopped. A call that is stopped while it waits
 * never reaches the model.
 */
export const inTurns =
  <O extends { readonly abortSignal?: AbortSignal | undefined }, R extends Streamed>(
    model: Streaming<O, R>,
    clock: Clock = systemClock,
  ) =>
  async (options: O): Promise<R> => {
    const { abortSignal } = options;
    const before = lastOf.get(model);
    const turn = new AbortController();
    const over = new Promise<void>((resolve) => onAbort(turn.signal, resolve));
    lastOf.set(model, before === undefined ? over : before.then(() => over));
    try {
      await new Promise<void>((resolve) => {
        if (abortSignal !== undefined) onAbort(abortSignal, resolve, turn.signal);
        void Promise.resolve(before).then(resolve);
      });
      abortSignal?.throwIfAborted();
      const leave = (): void => void clock.after(STOP_MS, turn.signal).then(() => turn.abort());
      if (abortSignal !== undefined) onAbort(abortSignal, leave, turn.signal);
      const result = await model.doStream(options);
      return { ...result, stream: watched(result.stream, () => turn.abort()) };
    } catch (error) {
      turn.abort();
      throw error;
    }
  };

/** @param over called when the stream has ended, failed or been cancelled */
function watched(stream: ReadableStream<unknown>, over: () => void): ReadableStream<unknown> {
  const reader = stream.getReader();
  return new ReadableStream<unknown>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          over();
          controller.close();
        } catch (error) {
          over();
          throw error;
        }
      },
      cancel: (reason) => reader.cancel(reason).finally(over),
    },
    { highWaterMark: 0 },
  );
}
