/**
 * A controller that aborts with `signals` as well. Whoever makes one aborts it when the work is over: a signal that lives
 * longer than the work then holds nothing of it. (`AbortSignal.any` leaves its trace in such a signal.)
 */
export function abortWith(...signals: readonly AbortSignal[]): AbortController {
  const controller = new AbortController();
  for (const signal of signals) {
    if (controller.signal.aborted) break;
    if (signal.aborted) controller.abort(signal.reason);
    else {
      const follow = (): void => controller.abort(signal.reason);
      signal.addEventListener("abort", follow, { once: true, signal: controller.signal });
    }
  }
  return controller;
}
