import { html, nothing, type TemplateResult } from "lit/html.js";
import type { RunRecovery } from "ag-ui-local-runtime/client";
import type { App } from "../app.js";
import { inSeconds } from "../format.js";
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
      if (run.last.recovery) return recovered(app, run.last.recovery);
      return html`<div class="ending is-broken">
        ${icons.alert}<span
          >This run was interrupted:
          ${error === undefined || error.code === "RUN_BROKEN" ? "its worker ended" : error.message}. Everything above
          is saved.</span
        >${again(app)}
      </div>`;
    case "errored":
      if (run.last.recovery?.is === "waiting") return recovered(app, run.last.recovery, error?.message);
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

/** What becomes of a run that broke, by its agent's policy. */
function recovered(app: App, recovery: RunRecovery, why = "This run was interrupted"): TemplateResult {
  if (recovery.is !== "waiting") {
    const text = recovery.is === "ask" ? asks(recovery) : gaveUp(recovery);
    return html`<div class="ending is-broken">
      ${icons.alert}<span>This run was interrupted. ${text} Everything above is saved.</span>${again(app)}
    </div>`;
  }
  const { runId, at } = recovery;
  const isDue = at === undefined || at <= Date.now();
  const button = (label: string, act: () => void): TemplateResult =>
    html`<button type="button" class="secondary" ?disabled=${app.isFailed} @click=${act}>${label}</button>`;
  return html`<div class="ending is-broken">
    ${icons.again}<span
      >${why}. <strong class="when">${isDue ? "It goes on by itself" : `Going on ${inSeconds(at)}`}</strong></span
    >
    <div class="ending-actions">
      ${isDue ? nothing : button("Now", () => void app.chat.retryWaiting(runId))}
      ${button("Not now", () => void app.chat.giveUp(runId))}
    </div>
  </div>`;
}

const asks = ({ why, tools = [] }: Extract<RunRecovery, { is: "ask" }>): string =>
  why === "tools-started"
    ? `It is not known whether ${tools.join(", ")} did its work: check, then run it again.`
    : "It does not go on by itself.";

const gaveUp = ({ why, attempts }: Extract<RunRecovery, { is: "gave-up" }>): string =>
  ({
    attempts: `It was tried ${attempts} times.`,
    cancelled: "You left it so.",
    "went-on": "The conversation went on without it.",
  })[why];

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
