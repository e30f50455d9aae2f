import { html, nothing, type TemplateResult } from "lit/html.js";
import { repeat } from "lit/directives/repeat.js";
import type { ThreadSummary } from "ag-ui-local-runtime/client";
import { type App, titleOf } from "../app.js";
import { ago, exactTime } from "../format.js";
import { icons } from "../icons.js";
import { threadUrl } from "../route.js";

export function threads(app: App): TemplateResult {
  const { list, loaded, more } = app.threads;
  const current = app.session.threadId;
  const now = Date.now();
  return html`
    <nav class="threads" id="threads" aria-label="Threads" tabindex="-1">
      <div class="threads-head">
        <h2 aria-hidden="true">Threads</h2>
        <button type="button" class="secondary" @click=${() => app.newThread()}>${icons.plus}New thread</button>
      </div>
      <ul>
        ${app.thread ? nothing : item(app, { threadId: current, title: app.title, empty: app.session.agent.messages.length === 0 })}
        ${repeat(
          list,
          (thread) => thread.threadId,
          (thread) => item(app, { threadId: thread.threadId, title: titleOf(thread), thread, now }),
        )}
      </ul>
      ${
        more
          ? html`<button type="button" class="secondary" @click=${() => void app.threads.readOlder()}>
              Show older threads
            </button>`
          : nothing
      }
      ${loaded && list.length === 0 ? html`<p class="fine">Threads are kept here, in this browser only.</p>` : nothing}
    </nav>
  `;
}

interface Item {
  readonly threadId: string;
  readonly title: string;
  readonly thread?: ThreadSummary;
  readonly empty?: boolean;
  readonly now?: number;
}

function item(app: App, { threadId, title, thread, empty, now = 0 }: Item): TemplateResult {
  const current = threadId === app.session.threadId;
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
              ? html`${mark(thread)}<time
                    datetime=${new Date(thread.updatedAt).toISOString()}
                    title=${exactTime(thread.updatedAt)}
                    >${ago(thread.updatedAt, now)}</time
                  >`
              : empty
                ? "nothing sent yet"
                : nothing
          }</span
        >
      </a>
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
