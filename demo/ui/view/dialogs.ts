import { html, nothing, type TemplateResult } from "lit/html.js";
import { keyed } from "lit/directives/keyed.js";
import { live } from "lit/directives/live.js";
import { ref } from "lit/directives/ref.js";
import type { ThreadSummary } from "ag-ui-local-runtime/client";
import type { App, Dialog } from "../app.js";
import { COMMAND } from "../command-key.js";
import { singleKeys } from "../single-keys.js";
import { titleOf } from "../threads.js";
import { modelDialog } from "./model.js";

/** What lies over the page. The browser keeps the focus in it, ends it with Escape and gives the focus back. */
export function dialogs(app: App): unknown {
  const { dialog } = app;
  if (!dialog) return nothing;
  return keyed(
    dialog,
    html`<dialog
      class="dialog ${dialog.is}"
      aria-labelledby="dialog-title"
      ${ref(show)}
      @close=${() => app.closeDialog()}
      @click=${(event: Event) => event.target === event.currentTarget && end(event)}
    >
      <div class="dialog-body">${bodyOf(app, dialog)}</div>
    </dialog>`,
  );
}

/** After the render: only what is in the page can be shown. */
function show(element: Element | undefined): void {
  queueMicrotask(() => {
    if (element instanceof HTMLDialogElement && element.isConnected && !element.open) element.showModal();
  });
}

const end = (event: Event): void => (event.currentTarget as Element).closest("dialog")?.close();

function bodyOf(app: App, dialog: Dialog): TemplateResult {
  switch (dialog.is) {
    case "rename":
      return rename(app, dialog.thread);
    case "shortcuts":
      return shortcuts(app);
    case "model":
      return modelDialog(app, end);
  }
}

function rename(app: App, thread: ThreadSummary): TemplateResult {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const title = new FormData(event.currentTarget as HTMLFormElement).get("title")?.toString().trim() ?? "";
    if (title === "") return;
    end(event);
    void app.actions.rename(thread, title);
  };
  return html`<h2 id="dialog-title">Rename thread</h2>
    <form @submit=${submit}>
      <label for="title">Title</label>
      <input id="title" name="title" maxlength="200" required autocomplete="off" .value=${titleOf(thread)} autofocus />
      <div class="dialog-actions">
        <button type="button" class="secondary" @click=${end}>Cancel</button>
        <button type="submit" class="primary">Rename</button>
      </div>
    </form>`;
}

const KEYS: readonly (readonly [keys: readonly string[], does: string])[] = [
  [["Enter"], "Send the message"],
  [["Shift", "Enter"], "New line"],
  [["Esc"], "From the message to Stop, while a run is live"],
  [["↑"], "Edit your last question, from an empty message"],
  [[COMMAND, "K"], "Search the threads"],
  [[COMMAND, "Z"], "Undo a deletion, outside of text fields"],
];

const SINGLE_KEYS: typeof KEYS = [
  [["/"], "Go to the message"],
  [["?"], "Show this list"],
];

function shortcuts(app: App): TemplateResult {
  const turn = (event: Event): void => {
    singleKeys.areOn = (event.currentTarget as HTMLInputElement).checked;
    app.changed();
  };
  return html`<h2 id="dialog-title">Keyboard shortcuts</h2>
    <dl class="keys">${KEYS.map(row)}</dl>
    <label class="check"
      ><input type="checkbox" .checked=${live(singleKeys.areOn)} @change=${turn} />Shortcuts of a single key</label
    >
    <dl class="keys ${singleKeys.areOn ? "" : "is-off"}">${SINGLE_KEYS.map(row)}</dl>
    <div class="dialog-actions">
      <button type="button" class="secondary" autofocus @click=${end}>Close</button>
    </div>`;
}

const row = ([keys, does]: (typeof KEYS)[number]): TemplateResult =>
  html`<div>
    <dt>${keys.map((key, index) => html`${index > 0 ? " + " : nothing}<kbd>${key}</kbd>`)}</dt>
    <dd>${does}</dd>
  </div>`;
