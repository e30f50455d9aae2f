import { useInsertionEffect } from "react";

/**
 * In a layer, so that any rule of the page that is in none goes before it. Colours are the page's own: text takes
 * `currentColor`, surfaces mix a little of it into what is behind them.
 */
const CSS = `@layer ag-ui-local-runtime {
  .agui-threads { display: flex; flex-direction: column; gap: 0.25rem; font: inherit; }
  .agui-threads ul { list-style: none; margin: 0; padding: 0; display: flex; flex-direction: column; gap: 0.125rem; }
  .agui-threads li { display: flex; align-items: center; border-radius: 0.5rem; }
  .agui-threads li:hover, .agui-threads li:focus-within { background: color-mix(in srgb, currentColor 7%, transparent); }
  .agui-threads li:has([aria-current]) { background: color-mix(in srgb, currentColor 12%, transparent); }
  .agui-threads button { font: inherit; color: inherit; background: none; border: 0; border-radius: 0.5rem;
    padding: 0.5rem; min-height: 2.25rem; min-width: 2.25rem; cursor: pointer; text-align: start; }
  .agui-threads input { font: inherit; color: inherit; background: none; flex: 1; min-width: 0; padding: 0.375rem;
    border: 1px solid currentColor; border-radius: 0.375rem; }
  .agui-threads :focus-visible { outline: 2px solid currentColor; outline-offset: -2px; }
  .agui-threads [aria-disabled="true"] { opacity: 0.6; cursor: default; }
  .agui-threads .agui-thread-title { flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .agui-threads .agui-thread-new { font-weight: 600; }
  .agui-threads .agui-thread-actions { display: flex; opacity: 0; }
  .agui-threads li:hover .agui-thread-actions, .agui-threads li:focus-within .agui-thread-actions { opacity: 1; }
  .agui-threads .agui-thread-actions button { text-align: center; padding: 0.25rem; }
  .agui-threads .agui-thread-running { flex: none; width: 0.5rem; height: 0.5rem; margin-inline-start: 0.5rem;
    border-radius: 50%; background: currentColor; animation: agui-pulse 1.2s ease-in-out infinite alternate; }
  .agui-threads .agui-thread-note { margin: 0; padding: 0.5rem; }
  .agui-failure { display: flex; flex-wrap: wrap; align-items: center; gap: 0.75rem; margin-block: 0.75rem;
    padding: 0.625rem 0.875rem; border: 1px solid; border-radius: 0.5rem; color: #b3261e; background: #b3261e14; }
  .agui-failure button { font: inherit; color: inherit; background: none; border: 1px solid; border-radius: 0.375rem;
    padding: 0.25rem 0.75rem; cursor: pointer; }
  @media (hover: none) { .agui-threads .agui-thread-actions { opacity: 1; } }
  @media (prefers-color-scheme: dark) { .agui-failure { color: #f2b8b5; background: #f2b8b514; } }
  @media (prefers-reduced-motion: reduce) { .agui-threads .agui-thread-running { animation: none; } }
  @keyframes agui-pulse { to { opacity: 0.25; } }
}`;

let isGiven = false;

/** Gives the page the components' style, once. A constructed sheet is no inline style: a strict CSP lets it be. */
export function useStyle(): void {
  useInsertionEffect(() => {
    if (isGiven) return;
    isGiven = true;
    try {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(CSS);
      document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    } catch {
      // Safari before 16.4 constructs none.
      const style = document.createElement("style");
      style.textContent = CSS;
      document.head.append(style);
    }
  }, []);
}
