import { html, nothing, type TemplateResult } from "lit/html.js";
import type { RuntimeStatus, Survives } from "ag-ui-local-runtime/client";
import type { App } from "../app.js";
import { plural } from "../format.js";
import { icons } from "../icons.js";

type Connected = Extract<RuntimeStatus, { is: "connected" }>;

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
        <h1>${app.agent.name}</h1>
        <span class="tagline">an AG-UI agent inside your browser</span>
      </div>
      ${runChip(app)} ${hostPopover(app)}
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

function runChip(app: App): TemplateResult {
  const { session } = app;
  if (!app.isRunning) return html`<span class="chip run-chip">Idle</span>`;
  const where = session.isOwnRun ? "Running" : "Running, started elsewhere";
  return html`<span class="chip run-chip is-running" title=${where}
    ><span class="pulse" aria-hidden="true"></span>${session.stopping ? "Stopping" : "Running"}${
      session.isOwnRun ? nothing : html`<span class="wide-label">, started elsewhere</span>`
    }</span
  >`;
}

function hostPopover(app: App): TemplateResult {
  const { status } = app;
  return html`
    <details class="popover host">
      <summary class="chip ${status.is === "failed" || status.is === "closed" ? "is-failed" : ""}">
        <span class="lamp is-${status.is}" aria-hidden="true"></span>${summaryOf(status)}
      </summary>
      <div class="popover-body">${explain(app)}</div>
    </details>
  `;
}

const HOSTS = { "shared-worker": "Shared worker", worker: "This tab’s worker", page: "This page" } as const;
/** The same where there is little room. */
const HOSTS_SHORT = { "shared-worker": "Shared", worker: "This tab", page: "Page" } as const;

function summaryOf(status: RuntimeStatus): TemplateResult {
  switch (status.is) {
    case "connecting":
      return html`Starting…`;
    case "reconnecting":
      return html`Reconnecting…`;
    case "failed":
      return html`No host`;
    case "closed":
      return html`Closed`;
    case "connected":
      return html`<span class="narrow-label">${HOSTS_SHORT[status.host]}</span
        ><span class="wide-label"
          >${HOSTS[status.host]} · ${plural(status.tabs, "tab")} ·
          ${status.durability === "durable" ? "saved on this device" : "not saved"}</span
        >`;
  }
}

function explain(app: App): TemplateResult {
  const { status } = app;
  switch (status.is) {
    case "connecting":
      return html`<p>Starting the host that runs the agent.</p>`;
    case "reconnecting":
      return html`<p>
        The host ended. The next one is being started; what you saw so far is kept. Attempt ${status.attempt}.
      </p>`;
    case "closed":
      return html`<p>This page has let go of its host.</p>
        <button type="button" class="secondary" @click=${() => app.retry()}>Try again</button>`;
    case "failed":
      return html`<p>${status.error.message}</p>
        <p>The message box shows what you can do.</p>`;
    case "connected":
      return facts(status);
  }
}

function facts(status: Connected): TemplateResult {
  const durable = status.durability === "durable";
  return html`
    <h2>Where your run lives</h2>
    <dl class="facts">
      <div>
        <dt>Host</dt>
        <dd><strong>${HOSTS[status.host]}</strong> ${HOST_MEANS[status.host]}</dd>
      </div>
      <div>
        <dt>Tabs</dt>
        <dd>
          <strong>${plural(status.tabs, "tab")} connected</strong> ${
            status.host === "shared-worker"
              ? "Each of them sees every run as it streams, and can stop it."
              : "Other tabs have workers of their own. They see this tab’s runs through the shared log, and can stop them."
          }
        </dd>
      </div>
      <div>
        <dt>Storage</dt>
        <dd>
          <strong>${durable ? "Saved on this device" : "Not saved"}</strong> ${
            durable
              ? "Every event is in this browser’s IndexedDB before it is shown. Nothing leaves your computer."
              : "This browser keeps no data for the page: threads are gone when the host ends."
          }
        </dd>
      </div>
      <div>
        <dt>A run survives</dt>
        <dd><strong>${SURVIVES[status.survives][0]}</strong> ${SURVIVES[status.survives][1]}</dd>
      </div>
    </dl>
    ${
      status.exclusion === "fence"
        ? html`<p class="fine">
            This address is not secure (http), so the browser offers no locks: a tab that ended is noticed only after
            some seconds, and a run whose tab or worker is blocked for as long may be cut off.
          </p>`
        : nothing
    }
    <p class="fine">Database <code>${status.dbName}</code>, host start <code>${status.bootId.slice(0, 8)}</code></p>
  `;
}

const HOST_MEANS = {
  "shared-worker": "One background process runs the agent for all tabs of this page.",
  worker:
    "This browser offers no shared worker here, so the agent runs in a worker of this tab. Runs end with this tab.",
  page: "No worker could be started, so the agent runs in the page itself. Runs end with this tab.",
} as const;

const SURVIVES: Record<Survives, readonly [string, string]> = {
  reload: [
    "Closing its tab, and a reload",
    "It goes on while any tab of this page is open, and through the reload of the only one.",
  ],
  "tab-close": [
    "Closing its tab",
    "It goes on while another tab of this page is open. Reloading the only tab ends it; what was shown is kept and can be run again.",
  ],
  nothing: [
    "Nothing: it ends with this tab",
    "Closing or reloading this tab interrupts the run. What was shown is kept and can be run again.",
  ],
};
