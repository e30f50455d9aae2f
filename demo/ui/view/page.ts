import { html, nothing, type TemplateResult } from "lit/html.js";
import type { App } from "../app.js";
import { composer } from "./composer.js";
import { conversation, type Scrolling } from "./conversation.js";
import { dialogs } from "./dialogs.js";
import { documents, hasDocuments } from "./documents.js";
import { header } from "./header.js";
import { secondTab } from "./second.js";
import { threadBar } from "./thread-bar.js";
import { threads } from "./threads.js";
import { undo } from "./undo.js";

export function page(app: App, scrolling: Scrolling): TemplateResult {
  const wide = matchMedia("(min-width: 1200px)").matches;
  const panelOpen = app.panelOpen ?? (wide && app.second === undefined && hasDocuments(app));
  // A panel that lies over the conversation: what is under it is out of reach.
  const covered = (panelOpen && !wide) || (app.threadsOpen && !matchMedia("(min-width: 760px)").matches);
  const uncover = (): void => {
    const target = app.threadsOpen ? "threads-toggle" : "panel-toggle";
    app.threadsOpen = false;
    if (!wide) app.panelOpen = false;
    app.focus(target);
  };
  return html`
    <a class="skip" href="#message" @click=${(event: Event) => (event.preventDefault(), app.focus("composer"))}
      >Skip to the message</a
    >
    <div
      class="page ${panelOpen ? "with-panel" : ""} ${app.threadsOpen ? "with-threads" : ""} ${app.second === undefined ? "" : "with-second"}"
    >
      ${header(app, panelOpen)} ${threads(app)} ${undo(app)}
      <main class="main" ?inert=${covered}>${threadBar(app)} ${conversation(app, scrolling)} ${composer(app)}</main>
      ${app.second === undefined ? nothing : secondTab(app, app.second)} ${panelOpen ? documents(app) : nothing}
      ${covered ? html`<div class="veil" @click=${uncover}></div>` : nothing}
    </div>
    <div class="sr-only" role="status">${app.announcement}</div>
    ${dialogs(app)} ${app.dropping ? html`<div class="drop" aria-hidden="true"><p>Drop to attach</p></div>` : nothing}
  `;
}
