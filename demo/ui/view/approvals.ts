import type { Interrupt } from "@ag-ui/core";
import { html, nothing, type TemplateResult } from "lit/html.js";
import type { App } from "../app.js";
import { icons } from "../icons.js";
import { indented } from "./message.js";

/** What the agent waits for: a person's permission, in whichever tab. */
export function approvals(app: App): TemplateResult | typeof nothing {
  const { interrupts } = app.chat.now;
  if (interrupts.length === 0) return nothing;
  return html`<section class="approvals" aria-label="Permission">
    ${interrupts.map((interrupt) => approval(app, interrupt))}
  </section>`;
}

function approval(app: App, interrupt: Interrupt): TemplateResult {
  const call = app.chat.callOf(interrupt);
  const chosen = app.chat.decisions.get(interrupt.id);
  const decide = (approved: boolean, label: string, kind: string): TemplateResult =>
    html`<button
      type="button"
      class=${kind}
      aria-pressed=${chosen === undefined ? nothing : chosen === approved}
      ?disabled=${!app.chat.isFree}
      @click=${() => void app.chat.decide(interrupt.id, approved)}
    >
      ${label}
    </button>`;
  return html`<div class="approval">
    ${icons.alert}
    <div>
      <p>
        <strong>${app.agent.name} asks for permission</strong>${
          call
            ? html` to call <code>${call.function.name}</code> with`
            : html`: ${interrupt.message ?? interrupt.reason}`
        }
      </p>
      ${
        // All of them: nobody can allow what is not shown.
        call ? html`<pre tabindex="0">${indented(call.function.arguments)}</pre>` : nothing
      }
      <p class="fine">Nothing happens until somebody answers. Any tab can, also after a restart.</p>
    </div>
    <div class="approval-actions">${decide(false, "Don’t allow", "secondary")}${decide(true, "Allow", "primary")}</div>
  </div>`;
}
