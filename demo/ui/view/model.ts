import type { PromptApiStatus } from "ag-ui-local-runtime/ai";
import { html, nothing, type TemplateResult } from "lit/html.js";
import { live } from "lit/directives/live.js";
import { BROWSER, isAddress, isLocal } from "../../model/choice.js";
import { type Found, type KnownServer, servers } from "../../model/servers.js";
import type { App } from "../app.js";
import { plural } from "../format.js";
import { icons } from "../icons.js";

/** Which model answers, and the way to another one. */
export const modelChip = (app: App): TemplateResult =>
  html`<button type="button" class="secondary model-chip" @click=${() => app.chooseModel()}>
    <span class="model-label">${app.model.label}</span
    ><span class="sr-only">: choose another model</span>${icons.chevron}
  </button>`;

/** The body of the dialog in which a model is chosen. */
export function modelDialog(app: App, end: (event: Event) => void): TemplateResult {
  const { model } = app;
  const { draft } = model;
  const known = draft.address === BROWSER || servers().some(({ address }) => address === draft.address);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    model.use();
    end(event);
  };
  return html`<h2 id="dialog-title">Choose a model</h2>
    <form class="model-form" @submit=${submit}>
      <fieldset class="servers">
        <legend>Where it runs</legend>
        ${servers().map((server) => serverChoice(app, server))} ${browserChoice(app)}
        <label class="agent-choice"
          ><input
            type="radio"
            name="server"
            .checked=${live(!known)}
            @change=${() => model.enter({ address: "", name: "", key: "" })}
          /><span
            ><strong>Another server</strong
            >${known ? nothing : statusOf(model.found.get(draft.address), undefined, draft.address)}</span
          ></label
        >
      </fieldset>
      ${draft.address === BROWSER ? nothing : fields(app, !known)}
      <div class="dialog-actions">
        <button type="button" class="quiet look-again" @click=${() => model.lookAround()}>
          ${icons.again}Look again
        </button>
        <button type="button" class="secondary" @click=${end}>Cancel</button>
        <button type="submit" class="primary">Use it</button>
      </div>
    </form>`;
}

/** What is entered of a server. */
function fields({ model }: App, isOther: boolean): TemplateResult {
  const { draft } = model;
  const found = model.found.get(draft.address);
  return html`
    ${
      isOther
        ? html`<label for="model-address">Address, up to and with /v1</label>
            <input
              id="model-address"
              type="url"
              required
              autocomplete="off"
              placeholder="https://…/v1"
              .value=${live(draft.address)}
              @input=${(event: Event) => model.enter({ address: valueOf(event) })}
              @change=${(event: Event) => void model.look(valueOf(event))}
            />`
        : nothing
    }
    <label for="model-name">Model</label>
    <input
      id="model-name"
      required
      autocomplete="off"
      list="model-names"
      placeholder=${found?.is === "found" && found.models.length > 0 ? "One of its models" : "As the server calls it"}
      .value=${live(draft.name)}
      @input=${(event: Event) => model.enter({ name: valueOf(event) })}
    />
    <datalist id="model-names">
      ${found?.is === "found" ? found.models.map((name) => html`<option value=${name}></option>`) : nothing}
    </datalist>
    <label for="model-key">Key, if it wants one</label>
    <input
      id="model-key"
      type="password"
      autocomplete="off"
      aria-describedby="model-key-hint"
      .value=${live(draft.key)}
      @input=${(event: Event) => model.enter({ key: valueOf(event) })}
    />
    <p class="fine" id="model-key-hint">
      Stays in this tab’s memory and goes along with each call. It is never stored, and gone with a reload.
    </p>
  `;
}

/** Where the browser has a model. */
function browserChoice({ model, browserModel }: App): TemplateResult | typeof nothing {
  const { status } = browserModel;
  if (status === undefined) return nothing;
  return html`<label class="agent-choice"
    ><input
      type="radio"
      name="server"
      .checked=${live(model.draft.address === BROWSER)}
      ?disabled=${status.is !== "ready"}
      @change=${() => model.enter({ address: BROWSER, name: "", key: "" })}
    /><span
      ><strong>This browser’s own model</strong><span class="server-status" role="status">${standing(status)}</span>${
        status.is === "downloading"
          ? html`<progress
              aria-label="Download of this browser’s own model"
              value=${status.progress ?? nothing}
            ></progress>`
          : nothing
      }${
        status.is === "downloadable"
          ? html`<button type="button" class="secondary" @click=${() => void browserModel.download()}>Download</button>`
          : nothing
      }</span
    ></label
  >`;
}

/** Without the progress: a screen reader is told of each change. */
function standing(status: PromptApiStatus): string {
  switch (status.is) {
    case "ready":
      return "Ready. A tab runs it for the worker. It calls no tools.";
    case "downloading":
      return "Downloading…";
    case "downloadable":
      return status.reason === undefined
        ? "Not downloaded yet. It may be some gigabytes large."
        : `It could not be downloaded: ${status.reason}`;
    case "unavailable":
      return status.reason === undefined ? "Not for this device." : `Not available: ${status.reason}`;
  }
}

const valueOf = (event: Event): string => (event.currentTarget as HTMLInputElement).value.trim();

function serverChoice({ model }: App, server: KnownServer): TemplateResult {
  const { name, address } = server;
  return html`<label class="agent-choice"
    ><input
      type="radio"
      name="server"
      .checked=${live(model.draft.address === address)}
      @change=${() => model.pick(address)}
    /><span><strong>${name}</strong>${statusOf(model.found.get(address), server, address)}</span></label
  >`;
}

/** What is known of a server, and what to do where it cannot be used. */
function statusOf(found: Found | undefined, server: KnownServer | undefined, address: string): TemplateResult {
  const tell = (lamp: string, text: string): TemplateResult =>
    html`<span class="server-status"><span class="lamp is-${lamp}" aria-hidden="true"></span>${text}</span>`;
  if (server === undefined && !isAddress(address)) {
    return html`<span class="server-status">Any server that speaks OpenAI’s chat completions.</span>`;
  }
  switch (found?.is) {
    case undefined:
    case "looking":
      return tell("connecting", found ? "Looking…" : "Not asked yet.");
    case "found":
      return tell(
        "connected",
        found.models.length === 0 ? "Runs, without a model." : `Runs: ${plural(found.models.length, "model")}.`,
      );
    case "refused":
      return tell(
        "failed",
        found.status === 401 || found.status === 403
          ? "It wants another key."
          : `It answers with status ${found.status}. Is the address right?`,
      );
    case "blocked":
      return tell("failed", `It runs, but does not let this page read its answers (CORS). ${server?.allow ?? ALLOW}`);
    case "absent":
      return tell("away", `Not found. ${server?.start ?? (isLocal(address) ? "Is it running?" : UNKNOWN)}`);
  }
}

const ALLOW = "Allow this page’s address in its settings. The agents’ worker is bound by that as well.";
const UNKNOWN = "This page asks only servers of this computer; the agent asks any address, so try it.";
