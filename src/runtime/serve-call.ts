import { abortWith } from "../platform/abort.js";
import { callRequest, type Call } from "./call-request.js";
import { isResponse, refusedError } from "./middleware.js";
import type { Admitted, Answer, Incoming } from "./request.js";

/** What is needed of the runtime's core. */
export interface Serving {
  serve<T>(incoming: Incoming, answer: (request: Admitted) => Promise<Answer<T>>): Promise<T>;
}

/**
 * Serves a call that did not come over HTTP, as the request that would ask for the same. The request's signal aborts when the
 * call is over, or with `gone`.
 *
 * Errors: RunnerError `refused`, by a middleware; what `answer` threw
 */
export async function serveCall<T>(
  core: Serving,
  call: Omit<Call, "signal">,
  answer: (request: Admitted) => Promise<Answer<T>>,
  ...gone: readonly AbortSignal[]
): Promise<T> {
  const calling = abortWith(...gone);
  const over = (): void => calling.abort();
  try {
    return await core.serve(callRequest({ ...call, signal: calling.signal }), async (request) => {
      const answered = await answer(request);
      void (answered.ended ?? Promise.resolve()).then(over);
      return answered;
    });
  } catch (error) {
    over();
    throw isResponse(error) ? await refusedError(error) : error;
  }
}
