import { abortWith } from "../platform/abort.js";
import type { Lives } from "../platform/locks.js";
import { serviceWorkerLifeLockName } from "../platform/names.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import { answerRelayed } from "../wire/answer-relayed.js";
import { errorResponse } from "../wire/error-response.js";
import type { RelayHandler } from "../wire/relay.js";
import type { RelayedRequest } from "../wire/relayed-request.js";

export { checkRelayed } from "../wire/relayed-request.js";

/** What a host answers relayed requests with. */
export interface AnswerParts {
  readonly runner: Pick<LocalAgentRunner, "hostId" | "dbName">;
  readonly lives: Lives;
  readonly handle?: RelayHandler | undefined;
  readonly hostEnds: AbortSignal;
}

const notImplemented: RelayHandler = () => Promise.resolve(errorResponse(501, "Not implemented"));

/**
 * Answers a relayed request as long as somebody waits for the answer: the tab that sent it or, where a service worker
 * did, that.
 *
 * @param tab aborts when the tab that handed the request over is gone
 * @returns resolves when nothing more is sent; never rejects
 */
export async function answerRequest(
  relayed: RelayedRequest,
  port: MessagePort,
  { runner: { hostId, dbName }, lives, handle = notImplemented, hostEnds }: AnswerParts,
  tab: AbortSignal,
): Promise<void> {
  const { serviceWorkerId } = relayed;
  const until = abortWith(serviceWorkerId === undefined ? tab : hostEnds);
  if (serviceWorkerId !== undefined) {
    // Held since before the request was sent; its fall is the only sign of the worker's end.
    const freed = lives.whenFree(serviceWorkerLifeLockName(serviceWorkerId), until.signal);
    void freed.then((ended) => ended && until.abort());
  }
  await answerRelayed(relayed, port, handle, { hostId, dbName, signal: until.signal });
  until.abort();
}
