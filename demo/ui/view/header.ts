import { html, nothing, type TemplateResult } from "lit/html.js";
import type { App } from "../app.js";
import { icons } from "../icons.js";
import { hostPopover } from "./host.js";

export function header(app: App, panelOpen: boolean): TemplateResult {
  return html`
    <header class="header">
      <button
        type="button"
        id="threads-toggle"
        class="quiet icon-only narrow-only"
        aria-label="Show threads"
        aria-expanded=${app.threadsOpen}
        aria-controls="threads"
        @click=${() => {
          app.threadsOpen = !app.threadsOpen;
          if (app.threadsOpen) app.focus("threads");
          app.changed();
        }}
      >
        ${icons.menu}
      </button>
      <div class="brand">
        <img src="/favicon.svg" alt="" width="28" height="28" />
        <h1>ag-ui-local-runtime</h1>
        <span class="tagline">demo</span>
      </div>
      ${runChip(app)}
      ${
        app.online
          ? nothing
          : html`<span class="chip is-offline"
              >${icons.offline}<span class="wide-label">Offline</span
              ><span class="sr-only narrow-label">Offline</span></span
            >`
      }
      ${hostPopover(app)}
      <button
        type="button"
        id="documents-toggle"
        class="quiet with-label"
        aria-label="Documents"
        aria-expanded=${panelOpen}
        @click=${() => {
          app.panelOpen = !panelOpen;
          if (app.panelOpen) app.focus("panel");
          app.changed();
        }}
      >
        ${icons.panel}<span class="wide-label">Documents</span>
      </button>
    </header>
  `;
}

function runChip(app: App): TemplateResult | typeof nothing {
  if (!app.chat.isRunning) return nothing;
  return html`<span class="chip run-chip is-running"
    ><span class="pulse" aria-hidden="true"></span>${app.chat.now.isStopping ? "Stopping" : "Running"}${
      app.chat.isElsewhere ? html`<span class="wide-label">, started in another tab</span>` : nothing
    }</span
  >`;
}
