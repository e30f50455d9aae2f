/** Callbacks for leaving a page and returning to it. */
export interface PageLeaving {
  /** It enters the back/forward cache: it is frozen, with everything that it holds. */
  readonly enter: () => void;
  /** It is shown again. */
  readonly leave?: () => void;
  /** It ends. */
  readonly unload?: () => void;
}

/**
 * A no-op outside of pages.
 * https://html.spec.whatwg.org/multipage/nav-history-apis.html#the-pagetransitionevent-interface
 */
export function onPageCache({ enter, leave, unload }: PageLeaving, signal?: AbortSignal): void {
  if (!("onpagehide" in globalThis)) return;
  const options = signal && { signal };
  globalThis.addEventListener("pagehide", ({ persisted }) => (persisted ? enter() : unload?.()), options);
  globalThis.addEventListener("pageshow", ({ persisted }) => persisted && leave?.(), options);
}
