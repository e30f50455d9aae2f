/**
 * A controller that also aborts with `signals`. Its owner must abort it when the work is over, so that longer-lived signals
 * keep no reference to it (as they would with `AbortSignal.any`).
 */
export function abortWith(...signals: readonly AbortSignal[]): AbortController {
  const controller = new AbortController();
  for (const signal of signals) onAbort(signal, () => controller.abort(signal.reason), controller.signal);
  return controller;
}

/** Calls `then` once: when the signal aborts, at once if it has. Not after `until` has. */
export function onAbort(signal: AbortSignal, then: () => void, until?: AbortSignal): void {
  if (until?.aborted) return;
  if (signal.aborted) then();
  else signal.addEventListener("abort", then, { once: true, ...(until && { signal: until }) });
}

interface NodeGlobal {
  readonly process?: {
    getBuiltinModule?(name: "node:events"): { setMaxListeners(n: number, target: AbortSignal): void };
  };
}

/**
 * A controller whose signal has many listeners, like a connection's. Node warns of a leak if there are more than ten:
 * https://nodejs.org/api/events.html#eventsdefaultmaxlisteners
 */
export function sharedController(): AbortController {
  const controller = new AbortController();
  (globalThis as NodeGlobal).process?.getBuiltinModule?.("node:events").setMaxListeners(0, controller.signal);
  return controller;
}
