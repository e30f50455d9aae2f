/** What happens to a page that is left. */
export interface PageLeaving {
  /** It goes into the back/forward cache, where it stands still with all that it holds. */
  readonly enter: () => void;
  /** It is shown again. */
  readonly leave?: () => void;
  /** It ends. */
  readonly unload?: () => void;
}

/**
 * Tells what happens to this page. Nothing outside of pages.
 * https://html.spec.whatwg.org/multipage/nav-history-apis.html#the-pagetransitionevent-interface
 */
export function onPageCache({ enter, leave, unload }: PageLeaving, signal?: AbortSignal): void {
  if (!("onpagehide" in globalThis)) return;
  const options = signal && { signal };
  globalThis.addEventListener("pagehide", ({ persisted }) => (persisted ? enter() : unload?.()), options);
  globalThis.addEventListener("pageshow", ({ persisted }) => persisted && leave?.(), options);
}
