/** What a page holds so that agents of the thread wait. A lock: it is in force before they begin, and ends with the page. */
const holdLock = (threadId: string): string => `lab-hold ${threadId}`;

/** Resolves when no page holds the thread, or `signal` aborts. */
export const letGo = (threadId: string, signal: AbortSignal): Promise<void> =>
  navigator.locks
    .request(holdLock(threadId), { mode: "shared", signal }, () => undefined)
    .catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });

/** Resolves when this page holds the thread, with what ends that. */
export const hold = (threadId: string): Promise<() => void> =>
  new Promise((taken, reject) => {
    const held = new Promise<void>((end) => {
      navigator.locks
        .request(holdLock(threadId), () => {
          taken(end);
          return held;
        })
        .catch(reject);
    });
  });
