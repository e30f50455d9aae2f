import { html, nothing, type TemplateResult } from "lit/html.js";
import { ARIA_COMMAND, COMMAND } from "../command-key.js";
import type { App } from "../app.js";
import { titleOf } from "../threads.js";

/** What was just deleted, and the offer to undo that. It stays while somebody points at it or has the focus in it. */
export function undo(app: App): TemplateResult {
  const { deletions } = app;
  const last = deletions.waiting.at(-1);
  const more = deletions.waiting.length - 1;
  // The place is always there: a screen reader tells what comes into it.
  return html`<div class="undo-place" role="status">
    ${
      last
        ? html`<div
            class="undo"
            @pointerenter=${() => deletions.hold("pointer")}
            @pointerleave=${() => deletions.release("pointer")}
            @focusin=${() => deletions.hold("focus")}
            @focusout=${() => deletions.release("focus")}
          >
            <p><span>“${titleOf(last.thread)}”</span>${more > 0 ? ` and ${more} more` : nothing} deleted</p>
            <button
              type="button"
              aria-keyshortcuts="${ARIA_COMMAND}+Z"
              title="${COMMAND} + Z"
              @click=${() => app.undoDelete()}
            >
              Undo
            </button>
          </div>`
        : nothing
    }
  </div>`;
}
