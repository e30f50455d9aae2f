import { html, nothing, type TemplateResult } from "lit/html.js";
import type { RuntimeStatus, Survives } from "ag-ui-local-runtime/client";
import type { App } from "../app.js";
import { fileSize, plural } from "../format.js";

type Connected = Extract<RuntimeStatus, { is: "connected" }>;

/** Where the runs live: a chip, and what it means. */
export function hostPopover(app: App): TemplateResult {
  const { status } = app;
  return html`
    <details
      class="popover host"
      @toggle=${(event: ToggleEvent) => event.newState === "open" && void app.measureStorage()}
    >
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
      return html`No worker`;
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
      return html`<p>Starting the worker that runs the agents.</p>`;
    case "reconnecting":
      return html`<p>
        The worker ended. The next one is starting; everything you have seen is kept. Attempt ${status.attempt}.
      </p>`;
    case "closed":
      return html`<p>This page has disconnected from its worker.</p>
        <button type="button" class="secondary" @click=${() => app.retry()}>Try again</button>`;
    case "failed":
      return html`<p>${status.error.message}</p>
        <p>The message box shows what you can do.</p>`;
    case "connected":
      return facts(app, status);
  }
}

function facts(app: App, status: Connected): TemplateResult {
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
              ? "Every tab sees every run as it streams, and can stop it."
              : "Other tabs have workers of their own. They see this tab’s runs through the shared log, and can stop them."
          }
        </dd>
      </div>
      <div class="tall">
        <dt>Storage</dt>
        <dd>
          <strong>${durable ? "Saved on this device" : "Not saved"}</strong> ${
            durable
              ? `Every event is in this browser’s IndexedDB before it is shown. ${sentTo(app)}`
              : "This browser keeps no data for the page: threads are gone when the worker ends."
          }
          ${storage(app)}
        </dd>
      </div>
      <div>
        <dt>A run survives</dt>
        <dd><strong>${SURVIVES[status.survives][0]}</strong> ${SURVIVES[status.survives][1]}</dd>
      </div>
      <div>
        <dt>Network</dt>
        <dd>
          <strong>${app.online ? "Online" : "Offline"}</strong> ${
            app.online
              ? app.needsNetwork
                ? "Needed to load this page, and by the model that you chose."
                : "Only needed to load this page; the agents do not use it."
              : app.needsNetwork
                ? "What you send waits until it is back. All else works without it."
                : "Everything on this page works without it."
          }
        </dd>
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
    <p class="fine">Database <code>${status.dbName}</code>, started as <code>${status.bootId.slice(0, 8)}</code></p>
  `;
}

function sentTo({ agent, recipient }: App): string {
  return recipient === undefined
    ? `What you send to ${agent.name} does not leave your computer.`
    : `What you send to ${agent.name} also goes to ${recipient}.`;
}

function storage(app: App): TemplateResult | typeof nothing {
  if (!app.storage) return nothing;
  const { used, most, isKept } = app.storage;
  return html`<span class="storage"
    >${fileSize(used)} of ${fileSize(most)} used.
    ${isKept ? "The browser deletes it only when you do." : "The browser may delete it when the disk is full."}
    ${
      isKept
        ? nothing
        : html`<button type="button" class="secondary" @click=${() => void app.keepStorage()}>Keep my threads</button>`
    }</span
  >`;
}

const HOST_MEANS = {
  "shared-worker": "One worker runs the agents for all tabs of this page.",
  worker:
    "This browser offers no shared worker here, so the agents run in a worker of this tab. Runs end with this tab.",
  page: "No worker could be started, so the agents run in the page itself. Runs end with this tab.",
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
