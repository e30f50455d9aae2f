import type { Message } from "@ag-ui/client";
import { html, nothing, type TemplateResult } from "lit/html.js";
import { guard } from "lit/directives/guard.js";
import { repeat } from "lit/directives/repeat.js";
import { readerStateOf } from "../../reader/state.js";
import type { App } from "../app.js";
import { icons } from "../icons.js";
import { isShown } from "../shown.js";
import { approvals } from "./approvals.js";
import { editor } from "./editor.js";
import { ending } from "./ending.js";
import { type MessageContext, messageView, resultsOf, toolResults } from "./message.js";
import { waiting } from "./waiting.js";
import { welcome } from "./welcome.js";

export interface Scrolling {
  /** The newest message is in view. */
  readonly atEnd: boolean;
  readonly toEnd: () => void;
}

export function conversation(app: App, scrolling: Scrolling): TemplateResult {
  const { messages, earlier: before } = app.chat.now;
  // Without a worker the message box says why.
  const failure = app.isFailed ? undefined : app.chat.failure;
  const end = ending(app);
  const empty = messages.length === 0 && app.chat.queued.length === 0 && end === nothing && !app.chat.isRunning;
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
        aria-busy=${app.chat.isRunning}
        tabindex="0"
      >
        ${
          empty
            ? failure !== undefined
              ? html`<div class="messages">${unreadable(failure)}</div>`
              : app.isLoading
                ? html`<p class="loading">Opening the thread…</p>`
                : welcome(app)
            : html`<div class="messages">
                ${failure === undefined ? nothing : unreadable(failure)} ${before === "none" ? nothing : earlier(app)}
                ${list(app, messages)} ${app.chat.isRunning ? working(app) : app.chat.asks ? approvals(app) : end}
                ${waiting(app)}
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

const unreadable = (failure: string): TemplateResult =>
  html`<div class="ending is-failure" role="alert">
    ${icons.alert}<span>This thread cannot be read: ${failure}. It is tried again.</span>
  </div>`;

/** Not `disabled` while it loads: the focus stays on it, for the next page. */
function earlier(app: App): TemplateResult {
  const loading = app.chat.now.earlier === "loading";
  const failure = loading ? undefined : app.chat.earlierFailure;
  return html`<div class="earlier">
    ${
      failure === undefined
        ? nothing
        : html`<div class="ending is-failure" role="alert">
            ${icons.alert}<span>Earlier messages could not be loaded: ${failure}</span>
          </div>`
    }
    <button
      type="button"
      class="secondary"
      aria-busy=${loading}
      aria-disabled=${loading || app.isFailed}
      @click=${() => void app.chat.showEarlier()}
    >
      ${loading ? "Loading earlier messages…" : failure === undefined ? "Show earlier messages" : "Try again"}
    </button>
  </div>`;
}

function list(app: App, all: readonly Message[]): unknown {
  const results = toolResults(all);
  const shown = all.filter(isShown);
  const last = all.at(-1);
  const { name } = app.agent;
  const view = (message: Message, index: number): unknown => {
    if (app.chat.editing?.message.id === message.id) return editor(app, app.chat.editing);
    const previous = shown[index - 1];
    const next = shown[index + 1];
    const growing = app.chat.isRunning && message === last;
    const context: MessageContext = {
      app,
      agent: name,
      results: resultsOf(message, results),
      growing,
      first: isAgents(message) && (!previous || !isAgents(previous)),
      // Of its turn: what is regenerated.
      final: !growing && (next === undefined ? !app.chat.isRunning : !isAgents(next)),
      free: app.chat.isFree,
      told: !app.chat.isLoaded(message.id),
    };
    // A message that changes is another object.
    const { results: given, ...rest } = context;
    return guard([message, ...given, ...Object.values(rest)], () => messageView(message, context));
  };
  return repeat(shown, (message) => message.id, view);
}

const isAgents = (message: Message): boolean => message.role !== "user";

function working(app: App): TemplateResult {
  const { progress } = readerStateOf(app.chat.now.state);
  const last = app.chat.now.messages.at(-1);
  const writes = last?.role === "assistant" && (last.content ?? "") !== "";
  const doing =
    app.status.is === "reconnecting"
      ? "The worker ended. Starting the next one"
      : app.chat.now.isStopping
        ? "Stopping"
        : progress && progress.done < 1
          ? `${progress.phase} · ${progress.name} · ${Math.round(progress.done * 100)} %`
          : writes
            ? "Writing"
            : "Working";
  const { run } = app.chat.now;
  const attempt = run.is === "running" ? run.attempt : undefined;
  return html`<p class="working" aria-live="off">
    <span class="dots" aria-hidden="true"><i></i><i></i><i></i></span
    ><span class="doing"
      >${doing}${attempt ? ` · goes on after an interruption, attempt ${attempt.number}` : nothing}</span
    >
  </p>`;
}
