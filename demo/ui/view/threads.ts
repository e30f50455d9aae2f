import { html, nothing, type TemplateResult } from "lit/html.js";
import { live } from "lit/directives/live.js";
import { repeat } from "lit/directives/repeat.js";
import type { ThreadSummary } from "ag-ui-local-runtime/client";
import type { App } from "../app.js";
import { ago, exactTime } from "../format.js";
import { icons } from "../icons.js";
import { threadUrl } from "../route.js";
import { titleOf } from "../threads.js";
import { threadMenu } from "./thread-menu.js";

export function threads(app: App): TemplateResult {
  const { shown, query, archived, isLoaded, isLoading, hasMore } = app.threads;
  // Without a worker the message box says why.
  const failure = app.isFailed ? undefined : app.threads.failure;
  const current = app.chat.now.threadId;
  const now = Date.now();
  const isNew = !app.thread && !archived && query === "";
  return html`
    <nav class="threads" id="threads" aria-label="Threads" tabindex="-1">
      <div class="threads-head">
        <h2>${archived ? "Archived" : "Threads"}</h2>
        <button type="button" class="secondary" @click=${() => app.newThread()}>${icons.plus}New thread</button>
      </div>
      <div class="search">
        ${icons.tool}<input
          id="search"
          type="search"
          aria-label="Search threads"
          placeholder="Search titles"
          autocomplete="off"
          .value=${live(query)}
          @input=${(event: Event) => void app.search((event.currentTarget as HTMLInputElement).value)}
        />
      </div>
      <ul>
        ${isNew ? item(app, { threadId: current, title: app.title, isEmpty: app.chat.now.messages.length === 0 }) : nothing}
        ${repeat(
          shown,
          (thread) => thread.threadId,
          (thread) => item(app, { threadId: thread.threadId, title: titleOf(thread), thread, now }),
        )}
      </ul>
      ${failure === undefined ? nothing : html`<p class="fine" role="alert">${failure}</p>`}
      ${isLoading && !isLoaded && !app.isFailed ? html`<p class="fine">Loading…</p>` : nothing}
      ${
        hasMore && query === ""
          ? html`<button
              type="button"
              class="secondary"
              aria-busy=${isLoading}
              aria-disabled=${isLoading}
              @click=${() => void app.threads.loadMore()}
            >
              ${isLoading ? "Loading…" : "Show older threads"}
            </button>`
          : nothing
      }
      ${isLoaded && shown.length === 0 ? html`<p class="fine">${emptyText(app)}</p>` : nothing}
      <button type="button" class="quiet archive-toggle" @click=${() => app.showArchived(!archived)}>
        ${archived ? icons.chevron : icons.archive}${archived ? "Back to threads" : "Archived threads"}
      </button>
    </nav>
  `;
}

function emptyText({ threads: { query, archived } }: App): string {
  if (query !== "") return `No ${archived ? "archived " : ""}thread has “${query}” in its title.`;
  return archived ? "No thread is archived." : "Threads are kept here, in this browser only.";
}

interface Item {
  readonly threadId: string;
  readonly title: string;
  readonly thread?: ThreadSummary;
  readonly isEmpty?: boolean;
  readonly now?: number;
}

function item(app: App, { threadId, title, thread, isEmpty, now = 0 }: Item): TemplateResult {
  const current = threadId === app.chat.now.threadId;
  const open = (event: MouseEvent): void => {
    // With a modifier it is the browser's: a second tab shows the same thread.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    app.openThread(threadId);
  };
  return html`
    <li>
      <a
        href=${threadUrl(threadId, thread?.agentId ?? (current ? app.agent.id : undefined))}
        aria-current=${current ? "page" : nothing}
        @click=${open}
      >
        <span class="thread-title">${title}</span>
        <span class="thread-meta"
          >${
            thread
              ? html`${thread.pinned ? html`<span class="mark">${icons.pin}<span class="sr-only">Pinned</span></span>` : nothing}${mark(thread)}<time
                    datetime=${new Date(thread.updatedAt).toISOString()}
                    title=${exactTime(thread.updatedAt)}
                    >${ago(thread.updatedAt, now)}</time
                  >`
              : isEmpty
                ? "nothing sent yet"
                : nothing
          }</span
        >
      </a>
      ${thread ? threadMenu(app, thread) : nothing}
    </li>
  `;
}

function mark(thread: ThreadSummary): TemplateResult | typeof nothing {
  if (thread.live)
    return html`<span class="mark is-running"><span class="pulse" aria-hidden="true"></span>Running</span>`;
  switch (thread.lastStatus) {
    case "stopped":
      return html`<span class="mark">Stopped</span>`;
    case "broken":
      return html`<span class="mark is-broken">Interrupted</span>`;
    case "errored":
      return html`<span class="mark is-failed">Failed</span>`;
    default:
      return nothing;
  }
}
