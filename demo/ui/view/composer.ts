import { html, nothing, type TemplateResult } from "lit/html.js";
import { live } from "lit/directives/live.js";
import { repeat } from "lit/directives/repeat.js";
import { ACCEPT } from "../../documents/intake.js";
import type { App } from "../app.js";
import { fileSize, plural } from "../format.js";
import { icons } from "../icons.js";
import { fileIcon } from "./message.js";

export function composer(app: App): TemplateResult {
  const { draft, attaching } = app.drafting;
  return html`
    <form
      class="composer"
      aria-label="New message"
      @submit=${(event: Event) => {
        event.preventDefault();
        void app.chat.send();
      }}
    >
      ${notice(app)}
      <div class="composer-box">
        ${
          draft.files.length > 0 || attaching > 0
            ? html`<ul class="attachments" aria-label="Attached files">
                ${repeat(
                  draft.files,
                  (file) => file.id,
                  (file) =>
                    html`<li class="file-chip">
                      ${fileIcon(file.type)}<span class="file-name">${file.name}</span
                      ><span class="file-size">${fileSize(file.size)}</span
                      ><button
                        type="button"
                        class="quiet icon-only small"
                        aria-label=${`Remove ${file.name}`}
                        @click=${() => (app.drafting.detach(file.id), app.focus("composer"))}
                      >
                        ${icons.close}
                      </button>
                    </li>`,
                )}
                ${attaching > 0 ? html`<li class="file-chip is-reading">Reading ${plural(attaching, "file")}…</li>` : nothing}
              </ul>`
            : nothing
        }
        <textarea
          id="message"
          aria-label="Message"
          aria-describedby="message-hint"
          rows="1"
          placeholder=${draft.files.length > 0 ? "Ask something about it, or just send it" : app.agent.placeholder}
          .value=${live(draft.text)}
          @input=${(event: Event) => app.drafting.type((event.currentTarget as HTMLTextAreaElement).value)}
          @keydown=${(event: KeyboardEvent) => onKey(app, event)}
        ></textarea>
        <div class="composer-bar">
          <button
            type="button"
            class="quiet with-label attach"
            aria-label="Attach file"
            @click=${() => document.querySelector<HTMLInputElement>("#file-input")?.click()}
          >
            ${icons.attach}<span>Attach<span class="wide-label"> file</span></span>
          </button>
          <input
            id="file-input"
            class="sr-only"
            type="file"
            multiple
            tabindex="-1"
            aria-hidden="true"
            accept=${ACCEPT}
            @change=${(event: Event) => {
              const input = event.currentTarget as HTMLInputElement;
              const files = [...(input.files ?? [])];
              input.value = "";
              if (files.length > 0) void app.attachFiles(files);
              app.focus("composer");
            }}
          />
          <span class="hint" id="message-hint">${hint(app)}</span>
          ${
            app.chat.isRunning
              ? html`<button
                  type="button"
                  id="stop"
                  class="stop"
                  aria-disabled=${app.chat.now.isStopping}
                  @click=${() => app.chat.stop()}
                >
                  ${icons.stop}Stop
                </button>`
              : nothing
          }
          <button type="submit" class="primary" ?disabled=${!app.chat.maySend}>${icons.send}Send</button>
        </div>
      </div>
      ${app.isSecond ? nothing : tools(app)}
    </form>
  `;
}

/** What a newcomer may try. */
function tools(app: App): TemplateResult {
  const hasWorker = app.status.is === "connected" && app.status.host !== "page";
  return html`<div class="tools">
    <button
      type="button"
      id="second-toggle"
      class="quiet side-by-side"
      aria-expanded=${app.second !== undefined}
      @click=${() => app.toggleSecond()}
    >
      ${icons.split}${app.second === undefined ? "Open a second tab here" : "Close second tab here"}
    </button>
    <a class="no-side-by-side" href=${location.href} target="_blank" rel="noopener">${icons.tabs}Open a second tab</a>
    <button
      type="button"
      class="quiet"
      aria-disabled=${!hasWorker}
      title="Ends the worker that runs the agents, as a crash would. What was shown is kept."
      @click=${() => hasWorker && app.endHost()}
    >
      ${icons.power}Kill the worker
    </button>
    <button type="button" class="quiet of-keyboard" @click=${() => app.open({ is: "shortcuts" })}>
      ${icons.keyboard}Shortcuts
    </button>
  </div>`;
}

function hint(app: App): string {
  if (app.isFailed) return "No worker: your text is kept";
  if (app.chat.now.isStopping) return "Stopping…";
  if (app.chat.isRunning) {
    const where = app.chat.isElsewhere ? "Started in another tab. " : "";
    return app.drafting.draft.text.trim() === ""
      ? `${where}Esc goes to Stop`
      : `${where}Enter: sent when this answer is done`;
  }
  if (app.chat.now.isSending) return "Sending…";
  if (app.chat.asks) return `Sent when you have answered ${app.agent.name}’s question`;
  if (app.needsNetwork && !app.online) return "Sent when the network is back";
  return "Enter sends, Shift + Enter for a new line";
}

function onKey(app: App, event: KeyboardEvent): void {
  if (event.isComposing) return;
  if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    void app.chat.send();
  } else if (event.key === "Escape" && app.chat.isRunning) {
    // Not a stop: Escape is pressed for many reasons. Enter or Space on the button then stops.
    event.preventDefault();
    app.focus("stop");
  } else if (event.key === "ArrowUp" && app.drafting.draft.text === "" && app.chat.isFree) {
    event.preventDefault();
    app.chat.edit();
  }
}

function notice(app: App): TemplateResult | typeof nothing {
  const { status } = app;
  if (status.is === "failed") {
    return html`<div class="notice is-failure" role="alert">
      ${icons.alert}
      <div>
        <p>
          <strong>${status.error.message}.</strong> ${advice(status.error.code)} Your threads and what you typed are
          kept.
        </p>
        ${
          status.error.details.causes && status.error.details.causes.length > 0
            ? html`<details>
                <summary>${icons.chevron}Details</summary>
                <ul>
                  ${status.error.details.causes.map((cause) => html`<li>${cause}</li>`)}
                </ul>
              </details>`
            : nothing
        }
      </div>
      <button type="button" class="secondary" @click=${() => app.retry()}>Try again</button>
    </div>`;
  }
  if (!app.notice) return nothing;
  return html`<div class="notice ${app.notice.kind === "failure" ? "is-failure" : ""}" role="alert">
    ${icons.alert}
    <div><p>${app.notice.text}</p></div>
    <button type="button" class="quiet icon-only small" aria-label="Dismiss" @click=${() => app.dismiss()}>
      ${icons.close}
    </button>
  </div>`;
}

function advice(code: string): string {
  switch (code) {
    case "protocol-mismatch":
    case "outdated":
      return "A newer version of this page is at work: trying again reloads it.";
    case "storage-blocked":
      return "Close or reload the other tabs of this page, then try again.";
    // The message says what to do.
    case "storage-unavailable":
    case "quota-exceeded":
      return "Then try again.";
    default:
      return "The browser could not start the worker that runs the agent.";
  }
}
