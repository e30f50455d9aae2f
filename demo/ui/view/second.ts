import { html, type TemplateResult } from "lit/html.js";
import type { App } from "../app.js";
import { icons } from "../icons.js";

/** The same page once more, in a frame: to the runtime it is a tab like any other. */
export function secondTab(app: App, address: string): TemplateResult {
  return html`<section class="second" aria-label="Second tab">
    <div class="second-head">
      <h2>Second tab</h2>
      <span class="fine">connects to the same worker by itself</span>
      <button
        type="button"
        class="quiet icon-only small"
        aria-label="Close second tab"
        @click=${() => app.toggleSecond()}
      >
        ${icons.close}
      </button>
    </div>
    <iframe title="Second tab" src=${address}></iframe>
  </section>`;
}
