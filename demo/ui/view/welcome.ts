import { html, nothing, type TemplateResult } from "lit/html.js";
import { live } from "lit/directives/live.js";
import { AGENTS, type Starter } from "../agents.js";
import type { App } from "../app.js";
import { icons } from "../icons.js";
import { fileIcon } from "./message.js";
import { modelChip } from "./model.js";

/** The first screen: what this is, and what to click. */
export function welcome(app: App): TemplateResult {
  return html`
    <div class="welcome">
      <h2>Agents that live in your browser</h2>
      <p class="lead">
        <strong>ag-ui-local-runtime</strong> runs AG-UI agents in a worker that all your tabs share, and saves every
        event before it is shown, so an answer survives reloads, crashes and closed tabs.
      </p>
      <div class="start">
        <pre><code>serveRuntime({ agents: { reader, research, model }, dbName: "my-app" });</code></pre>
        <p class="links">
          <a href="/guides/readme.html">README</a><a href="/guides/index.html">Guides</a
          ><a href="/guides/guarantees.html">What is guaranteed</a>
        </p>
      </div>
      ${choice(app)} ${app.agent.id === "model" ? html`<p class="model-line">Answers: ${modelChip(app)}</p>` : nothing}
      <section aria-labelledby="starters">
        <h3 id="starters">${app.agent.invites}</h3>
        <ul class="starters">
          ${app.agent.starters.map((it) => html`<li>${starter(app, it)}</li>`)}
        </ul>
      </section>
      <p class="fine">
        While it answers: ${app.isSecond ? "" : "open a second tab, "}reload, stop it, or kill the worker. ${where(app)}
      </p>
    </div>
  `;
}

function choice(app: App): TemplateResult {
  return html`<fieldset class="agents">
    <legend>Choose an agent</legend>
    ${AGENTS.map(
      ({ id, name, does }) =>
        html`<label class="agent-choice"
          ><input
            type="radio"
            name="agent"
            value=${id}
            .checked=${live(app.agent.id === id)}
            @change=${() => app.chooseAgent(id)}
          /><span><strong>${name}</strong> ${does}</span></label
        >`,
    )}
  </fieldset>`;
}

/** What becomes of what is sent. */
function where({ recipient }: App): string {
  return recipient === undefined
    ? "No key needed; nothing leaves this computer."
    : `What you send goes to ${recipient}.`;
}

function starter(app: App, it: Starter): TemplateResult {
  const icon = it.sample === undefined ? icons.send : fileIcon(it.sample.endsWith(".csv") ? "text/csv" : "text/plain");
  return html`<button
    type="button"
    class="starter"
    ?disabled=${!app.chat.isFree}
    @click=${() => void app.chat.begin(it)}
  >
    ${icon}<span>${it.label}</span>
  </button>`;
}
