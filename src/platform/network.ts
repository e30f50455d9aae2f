/** Whether this context has a network, as far as is known. */
export interface Network {
  /** False: there is surely none. True: there may be one. */
  readonly isOnline: boolean;
  /** Calls `listener` after changes, until `signal` aborts. Not every change need be told. */
  onChange(listener: () => void, signal: AbortSignal): void;
}

/**
 * What the browser knows: `navigator.onLine`, and the events of this context, page or worker
 * (https://html.spec.whatwg.org/multipage/system-state.html#browser-state). Elsewhere, as in Node: always online.
 */
export const browserNetwork: Network = {
  get isOnline() {
    const { navigator } = globalThis as { navigator?: { readonly onLine?: boolean } };
    return navigator?.onLine !== false;
  },
  onChange(listener, signal) {
    const { addEventListener } = globalThis as { addEventListener?: typeof globalThis.addEventListener };
    for (const type of ["online", "offline"]) addEventListener?.call(globalThis, type, listener, { signal });
  },
};
