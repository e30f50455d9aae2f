import { abortWith } from "../platform/abort.js";
import type { Lives } from "../platform/locks.js";
import { serviceWorkerLifeLockName } from "../platform/names.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import { answerRelayed } from "../wire/answer-relayed.js";
import type { RelayHandler } from "../wire/relay.js";
import type { RelayedRequest } from "../wire/relayed-request.js";

export { checkRelayed } from "../wire/relayed-request.js";

/** The parts of a host that answer relayed requests. */
export interface AnswerParts {
  readonly runner: Pick<LocalAgentRunner, "hostId" | "dbName">;
  readonly lives: Lives;
  readonly handle: RelayHandler;
  readonly hostEnds: AbortSignal;
}

/**
 * Answers a relayed request until its sender is gone: the service worker that sent it, else the tab.
 *
 * @param tab aborts when the tab that handed the request over is gone
 * @returns resolves when nothing more is sent; never rejects
 */
export async function answerRequest(
  relayed: RelayedRequest,
  port: MessagePort,
  { runner: { hostId, dbName }, lives, handle, hostEnds }: AnswerParts,
  tab: AbortSignal,
): Promise<void> {
  const { serviceWorkerId } = relayed;
  const until = abortWith(serviceWorkerId === undefined ? tab : hostEnds);
  if (serviceWorkerId !== undefined) {
    // Held since before the request was sent; only its fall tells of the service worker's end.
    const freed = lives.whenFree(serviceWorkerLifeLockName(serviceWorkerId), until.signal);
    void freed.then((ended) => ended && until.abort());
  }
  await answerRelayed(relayed, port, handle, { hostId, dbName, signal: until.signal });
  until.abort();
}
