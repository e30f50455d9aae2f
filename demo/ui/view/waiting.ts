import { html, nothing, type TemplateResult } from "lit/html.js";
import { repeat } from "lit/directives/repeat.js";
import type { WaitingReason, WaitingRun } from "ag-ui-local-runtime/client";
import type { App } from "../app.js";
import { textOfQuestion } from "../editing.js";
import { inSeconds, plural } from "../format.js";
import { icons } from "../icons.js";

/** What was sent and waits for its turn, in order, from whichever tab it came. */
export function waiting(app: App): TemplateResult | typeof nothing {
  const runs = app.chat.queued;
  if (runs.length === 0) return nothing;
  return html`<section class="waiting" aria-label="Waiting messages">
    <h3>${runs.length === 1 ? "1 message waits" : `${runs.length} messages wait`}</h3>
    <ol>
      ${repeat(
        runs,
        ({ runId }) => runId,
        (run, index) => item(app, run, index, runs),
      )}
    </ol>
  </section>`;
}

function item(app: App, run: WaitingRun, index: number, runs: readonly WaitingRun[]): TemplateResult {
  const { runId, reason } = run;
  const text = textOf(run);
  const move = (to: number): void => {
    // Before the one that will follow it.
    void app.chat.moveWaiting(runId, runs.filter((it) => it.runId !== runId)[to]?.runId ?? null, to + 1);
  };
  const again = reason.is === "failed" ? "Try again" : reason.is === "retry" ? "Start now" : undefined;
  return html`<li>
    <div class="waiting-text">
      <p class="waiting-message">${text}</p>
      <p class="fine ${reason.is === "failed" ? "is-failure" : ""}">
        ${reason.is === "offline" ? icons.offline : nothing}${says(app, reason, index)}
      </p>
    </div>
    <div class="waiting-actions">
      ${
        again === undefined
          ? nothing
          : html`<button type="button" class="secondary" @click=${() => void app.chat.retryWaiting(runId)}>
              ${again}
            </button>`
      }
      ${
        runs.length < 2
          ? nothing
          : html`${action("Move up", text, icons.up, index > 0, () => move(index - 1))}
            ${action("Move down", text, icons.down, index < runs.length - 1, () => move(index + 1))}`
      }
      ${action("Cancel", text, icons.close, true, () => void app.chat.cancelWaiting(run))}
    </div>
  </li>`;
}

/** Not `disabled`: the focus stays on it, wherever its message goes. */
const action = (label: string, text: string, icon: TemplateResult, enabled: boolean, act: () => void): TemplateResult =>
  html`<button
    type="button"
    class="quiet icon-only small"
    aria-label=${`${label}: ${text.slice(0, 60)}`}
    title=${label}
    aria-disabled=${!enabled}
    @click=${() => enabled && act()}
  >
    ${icon}
  </button>`;

function textOf({ messages }: WaitingRun): string {
  const questions = messages.filter((message) => message.role === "user");
  const text = questions.map(textOfQuestion).join(" ").trim();
  const files = questions.flatMap(({ content }) =>
    typeof content === "string" ? [] : content.filter(({ type }) => type !== "text"),
  ).length;
  return [text, files > 0 ? plural(files, "file") : ""].filter((part) => part !== "").join(" · ");
}

function says(app: App, reason: WaitingReason, index: number): string {
  switch (reason.is) {
    case "busy":
      return "Next, when this answer is done";
    case "behind":
      // The first one shown waits behind what goes on with a broken run.
      return index === 0 ? "Next, when this answer is done" : "After the one above";
    case "interrupts":
      return `When you have answered ${app.agent.name}’s question`;
    case "tool-calls":
      return "When the page’s tools have answered";
    case "offline":
      return "When the network is back";
    case "headers":
      return "When a page gives the key that it needs";
    case "retry":
      return `Tried again ${inSeconds(reason.at)}`;
    case "failed":
      return `Could not start: ${reason.error.message}`;
    case "starting":
      return "Starting";
  }
}
