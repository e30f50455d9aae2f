import { html, nothing, type TemplateResult } from "lit/html.js";
import type { App } from "../app.js";
import { icons } from "../icons.js";
import { modelChip } from "./model.js";
import { threadMenu } from "./thread-menu.js";

/** The shown thread: its title, who answers, what can be done with it. */
export function threadBar(app: App): TemplateResult | typeof nothing {
  const { thread } = app;
  if (!thread) return nothing;
  return html`<div class="thread-bar">
    <h2>${app.title}</h2>
    <span class="fine">${app.agent.name}</span>${app.agent.id === "model" ? modelChip(app) : nothing}
    ${
      thread.archived
        ? html`<span class="chip">${icons.archive}Archived</span
            ><button type="button" class="secondary" @click=${() => void app.actions.archive(thread)}>Restore</button>`
        : nothing
    }
    ${threadMenu(app, thread)}
  </div>`;
}
