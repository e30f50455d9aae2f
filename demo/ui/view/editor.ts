import { html, type TemplateResult } from "lit/html.js";
import { live } from "lit/directives/live.js";
import { type Editing, editedContent } from "../editing.js";
import type { App } from "../app.js";

/** In the place of a question: the same, to be changed. */
export function editor(app: App, editing: Editing): TemplateResult {
  const onKey = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    if (event.key === "Escape") app.chat.cancelEdit();
    else if (event.key === "Enter" && !event.shiftKey) void app.chat.sendEdited();
    else return;
    event.preventDefault();
  };
  return html`<form
    class="message is-user editor"
    aria-label="Edit question"
    @submit=${(event: Event) => (event.preventDefault(), void app.chat.sendEdited())}
  >
    <textarea
      id="edit"
      aria-label="Question"
      aria-describedby="edit-hint"
      rows="2"
      .value=${live(editing.text)}
      @input=${(event: Event) => {
        app.chat.editing = { ...editing, text: (event.currentTarget as HTMLTextAreaElement).value };
        app.changed();
      }}
      @keydown=${onKey}
    ></textarea>
    <div class="editor-bar">
      <span class="fine" id="edit-hint">Replaces what follows it</span>
      <button type="button" class="secondary" @click=${() => app.chat.cancelEdit()}>Cancel</button>
      <button type="submit" class="primary" ?disabled=${!app.chat.isFree || editedContent(editing) === undefined}>
        Ask again
      </button>
    </div>
  </form>`;
}
