import { invalidInput } from "../run/errors.js";
import { loaded } from "../run/loaded.js";
import type { RunRequest } from "../wire/shapes.js";
import type { Admitted, ServedRun } from "./request.js";
import { runCall, streamed } from "./call-request.js";
import { serveCall, type Serving } from "./serve-call.js";

/**
 * Starts a run that nobody here reads: one that waited, or that another device asks for. Through the middleware, which sees it
 * as the request of a tab. Resolves once the run is in the log.
 *
 * Errors: RunnerError, why it cannot start
 */
export async function startUnread(
  core: Serving,
  request: RunRequest,
  headers: Readonly<Record<string, string>>,
  start: (admitted: Admitted, made: RunRequest) => Promise<ServedRun>,
): Promise<void> {
  await serveCall(core, { ...runCall(request), headers }, async (admitted) => {
    const made = admitted.isReplaced
      ? await (await loaded(import("./rewritten.js"))).rewrittenRun(admitted, request)
      : request;
    if (made.threadId !== request.threadId || made.input.runId !== request.input.runId) {
      throw invalidInput(
        "request",
        "A middleware cannot give another thread or runId to a run that somebody waits for",
      );
    }
    const { ended, left } = await start(admitted, made);
    // Nobody reads it here.
    left();
    return { value: undefined, response: streamed, ended };
  });
}
