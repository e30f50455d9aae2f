import type { Message } from "@ag-ui/client";
import { html, nothing, type TemplateResult } from "lit/html.js";
import { repeat } from "lit/directives/repeat.js";
import { readerStateOf } from "../../reader/state.js";
import type { App } from "../app.js";
import { fileIcon } from "./message.js";
import { icons } from "../icons.js";
import { samples } from "../samples.js";
import type { Ending } from "../thread-session.js";
import { messageView, toolResults } from "./message.js";

export interface Scrolling {
  /** The newest message is in view. */
  readonly atEnd: boolean;
  readonly toEnd: () => void;
}

/** So many older messages come at a time. */
const EARLIER = 200;

export function conversation(app: App, scrolling: Scrolling): TemplateResult {
  const { session } = app;
  const { messages } = session.agent;
  const shown = messages.slice(-app.shown);
  const hidden = messages.length - shown.length;
  const empty = messages.length === 0 && session.endings.size === 0 && !app.isRunning;
  return html`
    <div class="conversation-frame">
      <h2 class="sr-only">Conversation</h2>
      <section
        class="conversation"
        id="conversation"
        role="log"
        aria-label="Conversation"
        aria-live="polite"
        aria-relevant="additions"
        aria-busy=${app.isRunning}
        tabindex="0"
      >
        ${
          empty
            ? app.isLoading
              ? html`<p class="loading">Opening the thread…</p>`
              : welcome(app)
            : html`<div class="messages">
                ${
                  hidden > 0
                    ? html`<button
                        type="button"
                        class="secondary earlier"
                        @click=${() => {
                          app.shown += EARLIER;
                          app.changed();
                        }}
                      >
                        Show earlier messages (${hidden})
                      </button>`
                    : nothing
                }
                ${list(app, shown, messages)}
              </div>`
        }
      </section>
      ${
        scrolling.atEnd || empty
          ? nothing
          : html`<button type="button" class="secondary jump" @click=${scrolling.toEnd}>
              ${icons.down}Jump to latest
            </button>`
      }
    </div>
  `;
}

function list(app: App, shown: readonly Message[], all: readonly Message[]): unknown {
  const { session } = app;
  const { endings, lastEnding } = session;
  const results = toolResults(all);
  const last = all.at(-1);
  const view = (message: Message, index: number): unknown => {
    const previous = shown[index - 1];
    return html`${messageView(message, {
      results,
      growing: app.isRunning && message === last,
      first: isAgents(message) && (!previous || !isAgents(previous) || endings.has(previous.id)),
    })}${endings.get(message.id)?.map((ending) => endingView(app, ending, ending === lastEnding && message === last))}`;
  };
  return html`
    ${endings.get(undefined)?.map((ending) => endingView(app, ending, ending === lastEnding && all.length === 0))}
    ${repeat(shown, (message) => message.id, view)} ${app.isRunning ? working(app) : nothing}
  `;
}

const isAgents = (message: Message): boolean => message.role !== "user";

function working(app: App): TemplateResult {
  const { progress } = readerStateOf(app.session.agent.state);
  const last = app.session.agent.messages.at(-1);
  const writes = last?.role === "assistant" && (last.content ?? "") !== "";
  const doing = app.session.stopping
    ? "Stopping"
    : progress && progress.done < 1
      ? `${progress.phase} · ${progress.name} · ${Math.round(progress.done * 100)} %`
      : writes
        ? "Writing"
        : "Working";
  return html`<p class="working" aria-live="off">
    <span class="dots" aria-hidden="true"><i></i><i></i><i></i></span><span class="doing">${doing}</span>
  </p>`;
}

function endingView(app: App, ending: Ending, newest: boolean): TemplateResult {
  const again =
    newest && !app.isRunning
      ? html`<button
          type="button"
          class="secondary"
          ?disabled=${app.session.sending || app.isFailed}
          title="Sends your last message again, as a new run. What is above stays."
          @click=${() => void app.again()}
        >
          ${icons.again}Run again
        </button>`
      : nothing;
  switch (ending.status) {
    case "stopped":
      return html`<p class="ending">${icons.stop}<span>Stopped</span></p>`;
    case "superseded":
      return html`<p class="ending"><span>Replaced by a later run</span></p>`;
    case "broken":
      return html`<div class="ending is-broken">
        ${icons.alert}<span>This run was interrupted: its host ended</span>${again}
      </div>`;
    case "errored":
      return html`<div class="ending is-failure">
        ${icons.alert}<span>${ending.message === "" ? "The run failed" : ending.message}</span>${again}
      </div>`;
  }
}

function welcome(app: App): TemplateResult {
  const shared = app.status.is !== "connected" || app.status.host === "shared-worker";
  return html`
    <div class="welcome">
      <h2>Give it something to read.</h2>
      <p>
        Reader goes through texts and tables, outlines them and answers with quotes or figures. It is an AG-UI agent
        that runs inside your browser: no server, no key, and nothing you drop here leaves this computer.
      </p>
      <p class="second-tab">
        ${icons.tabs}<span
          >${
            shared
              ? html`<a href=${location.href} target="_blank" rel="noopener">Open this thread in a second tab</a>: both
                  show the same run as it streams, either can stop it, and closing one does not end it.`
              : html`<a href=${location.href} target="_blank" rel="noopener">Open this thread in a second tab</a>: it
                  shows this run as it streams and can stop it. Here a run ends with the tab that started it.`
          }</span
        >
      </p>
      ${
        samples.length > 0
          ? html`<h3>Or start with a sample</h3>
              <ul class="samples">
                ${samples.map(
                  (sample) =>
                    html`<li>
                      <button type="button" class="sample" @click=${() => void app.attachSample(sample)}>
                        ${fileIcon(/\.(csv|tsv)$/.test(sample.name) ? "text/csv" : "text/plain")}<span
                          >${sample.name}</span
                        >
                      </button>
                    </li>`,
                )}
              </ul>`
          : nothing
      }
    </div>
  `;
}
