import { html, nothing, type TemplateResult } from "lit/html.js";
import type { App } from "../app.js";
import { icons } from "../icons.js";

/** How the thread's last run ended, where it ended otherwise than finished, and what to do about it. */
export function ending(app: App): TemplateResult | typeof nothing {
  const { run } = app.chat.now;
  if (run.is === "running" || run.gone || !run.last) return nothing;
  const { status, error } = run.last;
  switch (status) {
    case "finished":
      return nothing;
    case "stopped":
      return html`<div class="ending is-quiet">${icons.stop}<span>Stopped</span>${again(app)}</div>`;
    case "superseded":
      return html`<div class="ending is-quiet"><span>Replaced by a later run</span></div>`;
    case "broken":
      return html`<div class="ending is-broken">
        ${icons.alert}<span
          >This run was interrupted:
          ${error === undefined || error.code === "RUN_BROKEN" ? "its worker ended" : error.message}. Everything above
          is saved.</span
        >${again(app)}
      </div>`;
    case "errored":
      return html`<div class="ending is-failure">
        ${icons.alert}<span>${error?.message ?? "The run failed"}</span>${again(app)}${
          app.agent.id === "model"
            ? html`<button type="button" class="secondary" @click=${() => app.chooseModel()}>
                Choose another model
              </button>`
            : nothing
        }
      </div>`;
  }
}

function again(app: App): TemplateResult {
  const continues = app.agent.again === "continue";
  return html`<button
    type="button"
    class="secondary"
    ?disabled=${!app.chat.isFree}
    title=${
      continues
        ? "Asks the agent to continue: finished steps are kept, the interrupted one is repeated."
        : "Answers your last question again, in place of what is above."
    }
    @click=${() => void app.chat.again()}
  >
    ${icons.again}${continues ? "Continue" : "Run again"}
  </button>`;
}
