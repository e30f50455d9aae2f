import type { Message } from "@ag-ui/client";
import { html, nothing, type TemplateResult } from "lit/html.js";
import { guard } from "lit/directives/guard.js";
import { fileRefOf } from "../../documents/message.js";
import type { App } from "../app.js";
import { textOfQuestion } from "../editing.js";
import { fileSize } from "../format.js";
import { icons } from "../icons.js";
import { markdown } from "../markdown.js";

type Role = Message["role"];
type MessageOf<R extends Role> = Extract<Message, { role: R }>;
type ToolMessage = MessageOf<"tool">;
type ToolCall = NonNullable<MessageOf<"assistant">["toolCalls"]>[number];

export interface MessageContext {
  readonly app: App;
  /** The name of the thread's agent. */
  readonly agent: string;
  /** What its tool calls were answered, in their order. */
  readonly results: readonly (ToolMessage | undefined)[];
  /** The run is still writing it. */
  readonly growing: boolean;
  /** The first of the agent's after one of the person's. */
  readonly first: boolean;
  /** The last of the agent's before one of the person's. */
  readonly final: boolean;
  /** A run can begin now. */
  readonly free: boolean;
  /** A screen reader is told when it comes. */
  readonly told: boolean;
}

/** The tool messages by the call that they answer. */
export function toolResults(messages: readonly Message[]): Map<string, ToolMessage> {
  const results = new Map<string, ToolMessage>();
  for (const message of messages) if (message.role === "tool") results.set(message.toolCallId, message);
  return results;
}

export const resultsOf = (
  message: Message,
  results: ReadonlyMap<string, ToolMessage>,
): readonly (ToolMessage | undefined)[] =>
  message.role === "assistant" ? (message.toolCalls ?? []).map(({ id }) => results.get(id)) : [];

export const fileIcon = (type: string): TemplateResult => (/csv|tab-separated/.test(type) ? icons.table : icons.file);

export function messageView(message: Message, context: MessageContext): TemplateResult | typeof nothing {
  switch (message.role) {
    case "user":
      return user(message, context);
    case "assistant":
      return assistant(message, context);
    case "reasoning":
      return reasoning(message, context);
    case "activity":
      return html`<p class="activity">${message.activityType}</p>`;
    default:
      return nothing;
  }
}

function user(message: MessageOf<"user">, { app, free, told }: MessageContext): TemplateResult {
  const { content, id } = message;
  const files = (typeof content === "string" ? [] : content).map(fileRefOf).filter((file) => file !== undefined);
  const text = textOfQuestion(message);
  return html`<article class="message is-user" aria-label="You" aria-live=${told ? nothing : "off"}>
    ${
      files.length > 0
        ? html`<ul class="attachments">
            ${files.map(
              (file) =>
                html`<li class="file-chip">
                  ${fileIcon(file.type)}<span class="file-name">${file.name}</span
                  ><span class="file-size">${fileSize(file.size)}</span>
                </li>`,
            )}
          </ul>`
        : nothing
    }
    ${text === "" ? nothing : html`<p class="user-text">${text}</p>`}
    <div class="message-actions" aria-live="off">
      ${text === "" ? nothing : copyButton(app, text, "Copy question")}
      ${action("Edit question", icons.edit, free, () => app.chat.edit(id))}
    </div>
  </article>`;
}

function assistant(
  message: MessageOf<"assistant">,
  { app, agent, results, growing, first, final, free, told }: MessageContext,
): TemplateResult {
  const calls = message.toolCalls ?? [];
  const content = message.content ?? "";
  return html`<article
    class="message is-agent ${growing ? "is-growing" : ""}"
    aria-label=${agent}
    aria-live=${growing || !told ? "off" : nothing}
  >
    ${first ? byline(agent) : nothing}
    ${guard([message, ...results], () => calls.map((call, index) => toolCall(call, results[index])))}
    ${content === "" ? nothing : markdown(content)}
    ${
      growing || (content === "" && !final)
        ? nothing
        : html`<div class="message-actions" aria-live="off">
            ${content === "" ? nothing : copyButton(app, content, "Copy answer")}
            ${final ? action("Regenerate answer", icons.again, free, () => void app.chat.regenerate(message.id)) : nothing}
          </div>`
    }
  </article>`;
}

const copyButton = (app: App, text: string, label: string): TemplateResult =>
  action(label, icons.copy, true, () => void app.copy(text));

const action = (label: string, icon: TemplateResult, enabled: boolean, act: () => void): TemplateResult =>
  html`<button
    type="button"
    class="quiet icon-only small"
    aria-label=${label}
    title=${label}
    ?disabled=${!enabled}
    @click=${act}
  >
    ${icon}
  </button>`;

const byline = (agent: string): TemplateResult => html`<p class="byline" aria-hidden="true">${agent}</p>`;

function reasoning({ content }: MessageOf<"reasoning">, { agent, first, growing }: MessageContext): TemplateResult {
  return html`<article class="message is-agent" aria-label=${`${agent}’s reasoning`} aria-live="off">
    ${first ? byline(agent) : nothing}
    <details class="fold">
      <summary>
        ${icons.chevron}${icons.thought}<span>How it chose</span>${
          growing ? html`<span class="pulse" aria-hidden="true"></span>` : nothing
        }
      </summary>
      <div class="fold-body reasoning">${content}</div>
    </details>
  </article>`;
}

function toolCall(call: ToolCall, result: ToolMessage | undefined): TemplateResult {
  const args = call.function.arguments;
  return html`<details class="fold tool-call" aria-live="off">
    <summary>
      ${icons.chevron}${icons.tool}<code>${call.function.name}</code><span class="tool-args">${brief(args)}</span>
      ${
        result
          ? result.error
            ? html`<span class="mark is-failed">failed</span>`
            : nothing
          : html`<span class="mark is-running">…</span>`
      }
    </summary>
    <div class="fold-body">
      <p class="fold-label">Arguments</p>
      <pre tabindex="0">${pretty(args)}</pre>
      <p class="fold-label">Result</p>
      ${
        result
          ? html`<pre tabindex="0">${pretty(result.error ?? textOf(result.content))}</pre>`
          : html`<p class="fine">Not there yet.</p>`
      }
    </div>
  </details>`;
}

function textOf(content: ToolMessage["content"]): string {
  return typeof content === "string"
    ? content
    : content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // Still streaming, or never was JSON.
    return undefined;
  }
}

/** Arguments in one line: `query: "tides", limit: 5`. */
export function brief(json: string): string {
  const value = parse(json);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return json.slice(0, 160);
  return Object.entries(value)
    .map(([name, member]) => `${name}: ${typeof member === "string" ? member : JSON.stringify(member)}`)
    .join(", ")
    .slice(0, 160);
}

/** More than this of a result is of no use on a page. */
const MAX_SHOWN = 20_000;

/** JSON with indents, none of it left out; what is no JSON as it is. */
export function indented(json: string): string {
  const value = parse(json);
  return value === undefined ? json : JSON.stringify(value, null, 2);
}

function pretty(json: string): string {
  const text = indented(json);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n…` : text;
}
