import { html, nothing, type TemplateResult } from "lit/html.js";
import { guard } from "lit/directives/guard.js";
import { repeat } from "lit/directives/repeat.js";
import {
  type DocumentState,
  readerStateOf,
  type ReaderProgress,
  TABLE_PHASES,
  TEXT_PHASES,
  type TextDocumentState,
} from "../../reader/state.js";
import type { App } from "../app.js";
import { figure, fileSize } from "../format.js";
import { icons } from "../icons.js";
import { columns } from "./columns.js";
import { fileIcon } from "./message.js";

export const hasDocuments = (app: App): boolean => Object.keys(readerStateOf(app.chat.now.state).documents).length > 0;

/** What the agent knows of the thread's documents, from its state, while it finds it out. */
export function documents(app: App): TemplateResult {
  const state = readerStateOf(app.chat.now.state);
  const list = Object.values(state.documents).toReversed();
  // A stopped run leaves its last progress behind.
  const progress = app.chat.isRunning ? state.progress : null;
  return html`
    <aside class="documents" id="documents" aria-label="Documents" tabindex="-1">
      <div class="documents-head">
        <h2>Documents</h2>
        <button
          type="button"
          class="quiet icon-only"
          aria-label="Close documents"
          @click=${() => {
            app.panelOpen = false;
            app.focus("panel-toggle");
            app.changed();
          }}
        >
          ${icons.close}
        </button>
      </div>
      ${
        list.length === 0
          ? html`<p class="fine">
              What Reader finds in a document appears here while it reads: outline, key terms, or columns with their
              figures.
            </p>`
          : repeat(
              list,
              (document) => document.id,
              (document) => {
                const own = progress?.documentId === document.id ? progress : null;
                return guard([document, own, app.chat.isRunning], () => documentView(app, document, own));
              },
            )
      }
    </aside>
  `;
}

function documentView(app: App, document: DocumentState, progress: ReaderProgress | null): TemplateResult {
  return html`
    <section class="document" aria-label=${document.name}>
      <h3>${fileIcon(document.mimeType)}<span>${document.name}</span></h3>
      <p class="fine">${fileSize(document.size)}</p>
      ${document.phase === "Done" && !progress ? nothing : phases(app, document, progress)}
      ${
        document.counts.length > 0
          ? html`<dl class="counts">
              ${document.counts.map(
                ({ name, value }) =>
                  html`<div>
                    <dt>${name}</dt>
                    <dd>${figure(value)}</dd>
                  </div>`,
              )}
            </dl>`
          : nothing
      }
      ${document.kind === "text" ? text(app, document) : columns(app, document.columns)}
    </section>
  `;
}

function phases(app: App, document: DocumentState, progress: ReaderProgress | null): TemplateResult {
  const known: readonly string[] = document.kind === "text" ? TEXT_PHASES : TABLE_PHASES;
  const at = document.phase === "Done" ? known.length : known.indexOf(document.phase);
  const rows = known.map((name, index) => ({
    name,
    done: index < at ? 1 : progress?.phase === name ? progress.done : 0,
    current: index === at,
  }));
  // After the reading: searching for an answer.
  if (progress && !known.includes(progress.phase)) {
    rows.length = 0;
    rows.push({ name: progress.phase, done: progress.done, current: true });
  }
  return html`<ul class="phases">
    ${rows.map(
      ({ name, done, current }) =>
        html`<li class="${done === 1 ? "is-done" : ""} ${current ? "is-current" : ""}">
          <span>${name}</span
          ><span class="phase-state"
            >${current && !app.chat.isRunning ? "not finished" : `${Math.round(done * 100)} %`}</span
          >
          <progress max="1" .value=${done} aria-label=${name}></progress>
        </li>`,
    )}
  </ul>`;
}

function text(app: App, document: TextDocumentState): TemplateResult {
  const strongest = Math.max(1, ...document.terms.map(({ count }) => count));
  return html`
    ${
      document.outline.length > 0
        ? html`<details class="part" open>
            <summary>${icons.chevron}Outline</summary>
            <ol class="outline">
              ${document.outline.map(
                ({ title, level, line }) =>
                  html`<li class="level-${Math.min(6, Math.max(1, level))}">
                    <span>${title}</span><span class="line">${line}</span>
                  </li>`,
              )}
            </ol>
          </details>`
        : nothing
    }
    ${
      document.terms.length > 0
        ? html`<details class="part" open>
            <summary>${icons.chevron}Key terms</summary>
            <ul class="terms">
              ${document.terms.map(
                ({ term, count }) =>
                  html`<li>
                    <button
                      type="button"
                      class="term"
                      title="Ask about it"
                      @click=${() => ask(app, `What does it say about ${term}?`)}
                    >
                      <span>${term}</span
                      ><svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                        <rect width=${(100 * count) / strongest} height="4" rx="2" /></svg
                      ><span class="line">${figure(count)}<span class="sr-only"> times</span></span>
                    </button>
                  </li>`,
              )}
            </ul>
          </details>`
        : nothing
    }
  `;
}

/** Puts a question into the composer, where it may still be changed. */
export function ask(app: App, question: string): void {
  if (!matchMedia("(min-width: 1200px)").matches) app.panelOpen = false;
  app.drafting.type(question);
  app.focus("composer");
}
