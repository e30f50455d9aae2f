import type { Message } from "@ag-ui/client";
import { html, nothing, type TemplateResult } from "lit/html.js";
import { guard } from "lit/directives/guard.js";
import { live } from "lit/directives/live.js";
import { repeat } from "lit/directives/repeat.js";
import { readerStateOf } from "../../reader/state.js";
import { AGENTS } from "../agents.js";
import type { App } from "../app.js";
import { fileIcon } from "./message.js";
import { icons } from "../icons.js";
import { samples } from "../samples.js";
import type { Ending } from "../thread-session.js";
import { type MessageContext, messageView, resultsOf, toolResults } from "./message.js";

export interface Scrolling {
  /** The newest message is in view. */
  readonly atEnd: boolean;
  readonly toEnd: () => void;
}

export function conversation(app: App, scrolling: Scrolling): TemplateResult {
  const { session } = app;
  const { messages } = session.agent;
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
                ${session.agent.hasEarlier ? earlier(app) : nothing} ${list(app, messages)}
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

/** Not `disabled` while it loads: the focus stays on it, for the next page. */
function earlier(app: App): TemplateResult {
  const { earlier: stand } = app.session;
  const loading = stand.is === "loading";
  return html`<div class="earlier">
    ${
      stand.is === "failed"
        ? html`<div class="ending is-failure" role="alert">
            ${icons.alert}<span>Earlier messages could not be loaded: ${stand.message}</span>
          </div>`
        : nothing
    }
    <button
      type="button"
      class="secondary"
      aria-busy=${loading}
      aria-disabled=${loading || app.isFailed}
      @click=${() => void app.showEarlier()}
    >
      ${loading ? "Loading earlier messages…" : stand.is === "failed" ? "Try again" : "Show earlier messages"}
    </button>
  </div>`;
}

function list(app: App, all: readonly Message[]): unknown {
  const { session } = app;
  const { endings, lastEnding } = session;
  const results = toolResults(all);
  const last = all.at(-1);
  const { name } = app.agent;
  const view = (message: Message, index: number): unknown => {
    const previous = all[index - 1];
    const context: MessageContext = {
      agent: name,
      results: resultsOf(message, results),
      growing: app.isRunning && message === last,
      first: isAgents(message) && (!previous || !isAgents(previous) || endings.has(previous.id)),
      told: !session.isLoaded(message.id),
    };
    // A message that changes is another object.
    const drawnFrom = [message, ...context.results, name, context.growing, context.first, context.told];
    return html`${guard(drawnFrom, () => messageView(message, context))}${endings.get(message.id)?.map((ending) => endingView(app, ending, ending === lastEnding && message === last))}`;
  };
  return html`
    ${endings.get(undefined)?.map((ending) => endingView(app, ending, ending === lastEnding && all.length === 0))}
    ${repeat(all, (message) => message.id, view)} ${app.isRunning ? working(app) : nothing}
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
          title=${app.agent.again.means}
          @click=${() => void app.again()}
        >
          ${icons.again}${app.agent.again.label}
        </button>`
      : nothing;
  switch (ending.status) {
    case "stopped":
      return html`<p class="ending">${icons.stop}<span>Stopped</span></p>`;
    case "superseded":
      return html`<p class="ending"><span>Replaced by a later run</span></p>`;
    case "broken":
      return html`<div class="ending is-broken">
        ${icons.alert}<span>${ending.message === "" ? "This run was interrupted: its host ended" : ending.message}</span>${again}
      </div>`;
    case "errored":
      return html`<div class="ending is-failure">
        ${icons.alert}<span>${ending.message === "" ? "The run failed" : ending.message}</span>${again}
      </div>`;
  }
}

function welcome(app: App): TemplateResult {
  const { agent } = app;
  const shared = app.status.is !== "connected" || app.status.host === "shared-worker";
  return html`
    <div class="welcome">
      <h2>${agent.invites}</h2>
      <p>${agent.introduces}</p>
      ${choice(app)}
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
      ${agent.questions.length > 0 ? questions(app) : nothing}
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
      <p class="fine"><a href="/guides/index.html">Guides</a>: how this works, and how to put agents into an app.</p>
    </div>
  `;
}

function choice(app: App): TemplateResult {
  return html`<fieldset class="agents">
    <legend>Who shall answer?</legend>
    ${AGENTS.map(
      ({ id, name, does }) =>
        html`<label class="agent-choice"
          ><input
            type="radio"
            name="agent"
            value=${id}
            .checked=${live(app.agent.id === id)}
            @change=${() => app.chooseAgent(id)}
          /><span><strong>${name}</strong> ${does}</span></label
        >`,
    )}
  </fieldset>`;
}

function questions(app: App): TemplateResult {
  return html`<h3>Or start with a question</h3>
    <ul class="samples">
      ${app.agent.questions.map(
        (question) =>
          html`<li>
            <button
              type="button"
              class="sample"
              @click=${() => {
                app.type(question);
                app.focus("composer");
              }}
            >
              ${question}
            </button>
          </li>`,
      )}
    </ul>`;
}
