import { RunnerError } from "../run/errors.js";
import { loaded } from "../run/loaded.js";
import type { RunRequest } from "../wire/shapes.js";
import { callRequest } from "./call-request.js";
import { isResponse, refusedError } from "./middleware.js";
import type { Admitted, Answer, Incoming } from "./request.js";
import { runCall, streamed } from "./run-call.js";
import type { ServedRun } from "./served-run.js";

/** What is needed of the runtime's core. */
interface Core {
  serve<T>(incoming: Incoming, answer: (request: Admitted) => Promise<Answer<T>>): Promise<T>;
}

/**
 * Starts a run that nobody here reads: one that waited, or that another device asks for. Through the middleware, which sees it
 * as the request of a tab. Resolves once the run is in the log.
 *
 * Errors: RunnerError, why it cannot start
 */
export async function startUnread(
  core: Core,
  request: RunRequest,
  headers: Readonly<Record<string, string>>,
  start: (admitted: Admitted, made: RunRequest) => Promise<ServedRun>,
): Promise<void> {
  const calling = new AbortController();
  const over = (): void => calling.abort();
  const call = callRequest({ ...runCall(request), headers, signal: calling.signal });
  try {
    await core.serve(call, async (admitted) => {
      const made = admitted.isReplaced
        ? await (await loaded(import("./rewritten.js"))).rewrittenRun(admitted, request)
        : request;
      if (made.threadId !== request.threadId || made.input.runId !== request.input.runId) {
        const message = "A middleware cannot give another thread or runId to a run that somebody waits for";
        throw new RunnerError("invalid-input", { field: "request", threadId: request.threadId }, { message });
      }
      const { ended, left } = await start(admitted, made);
      // Nobody reads it here.
      left();
      void (ended ?? Promise.resolve()).then(over);
      return { value: undefined, response: streamed, ...(ended !== undefined && { ended }) };
    });
  } catch (error) {
    over();
    throw isResponse(error) ? await refusedError(error) : error;
  }
}
