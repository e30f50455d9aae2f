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

/** What of Node is used where there is one. */
interface NodeGlobal {
  readonly process?: {
    getBuiltinModule?(name: "node:events"): { setMaxListeners(n: number, target: AbortSignal): void };
  };
}

/**
 * A controller for something that much depends on, like a connection. Node takes a signal with more than ten listeners for
 * a leak, and warns of it: https://nodejs.org/api/events.html#eventsdefaultmaxlisteners
 */
export function sharedController(): AbortController {
  const controller = new AbortController();
  (globalThis as NodeGlobal).process?.getBuiltinModule?.("node:events").setMaxListeners(0, controller.signal);
  return controller;
}
