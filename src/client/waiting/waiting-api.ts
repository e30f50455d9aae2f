import { take, type Observable } from "rxjs";
import { onAbort } from "../../platform/abort.js";
import { RunnerError } from "../../run/errors.js";
import type { WaitingRun } from "../../wire/waiting-shapes.js";
import type { HostLink } from "../host-link.js";
import { hostStream, isHostGone } from "../host-stream.js";

/** The runs that wait in the log for their turn, whichever tab asked for them. */
export interface WaitingApi {
  /**
   * A thread's waiting runs in order, or those of all threads, now and after each change in any tab. Errors: RunnerError
   * `refused`, or of the storage. While the database is locked, nothing comes.
   */
  watch(threadId?: string): Observable<readonly WaitingRun[]>;
  /** A thread's waiting runs in order, or those of all threads. Errors: as {@link watch}; RunnerError `locked`, or one of the connection. */
  list(threadId?: string): Promise<readonly WaitingRun[]>;
  /**
   * Puts a run before another one of its thread, or (null) at the end; one that had failed is tried again there.
   *
   * @returns false where one of them does not wait any more
   */
  move(threadId: string, runId: string, before: string | null): Promise<boolean>;
  /** Removes a run and its messages. @returns false where it does not wait any more: it has started, or was cancelled */
  cancel(threadId: string, runId: string): Promise<boolean>;
  /** Tries a run again that failed, or that waits for a time. @returns false where it does not wait any more */
  retry(threadId: string, runId: string): Promise<boolean>;
}

export function waitingApi(link: HostLink): WaitingApi {
  const read = (
    threadId: string | undefined,
    asksNext?: (error: unknown) => boolean,
  ): Observable<readonly WaitingRun[]> => {
    const query = threadId === undefined ? {} : { threadId };
    return hostStream(link, (port) => link.callOnce("watchWaiting", query, port), undefined, asksNext);
  };
  return {
    watch: (threadId) => read(threadId),
    list: (threadId) =>
      // L13: there may be no host, or none any more.
      link.withinDeadline(async (settled) => {
        await link.linked();
        return new Promise((resolve, reject) => {
          const complete = (): void => reject(new RunnerError("closed"));
          const reading = read(threadId, isHostGone)
            .pipe(take(1))
            .subscribe({ next: resolve, error: reject, complete });
          onAbort(settled, () => reading.unsubscribe());
        });
      }),
    move: (threadId, runId, before) => link.call("moveWaiting", { threadId, runId, before }),
    cancel: (threadId, runId) => link.call("cancelWaiting", { threadId, runId }),
    retry: (threadId, runId) => link.call("retryWaiting", { threadId, runId }),
  };
}
