import { EventType } from "@ag-ui/core";
import type { AGUIEvent } from "@ag-ui/core";
import type {
  BaseEvent,
  Message,
  StepStartedEvent,
  SubagentStartedEvent,
  ToolCallStartEvent,
  TextMessageStartEvent,
  ReasoningStartEvent,
  ReasoningMessageStartEvent,
} from "@ag-ui/client";
import type { OpenConstructs, OpenToolCall } from "./types.js";

/** A construct that a run has started, with the event that did. `unanswered`: a tool call that ended without result. */
export type Started =
  | { readonly kind: "text"; readonly start: TextMessageStartEvent }
  | { readonly kind: "span"; readonly start: ReasoningStartEvent }
  | { readonly kind: "reasoning"; readonly start: ReasoningMessageStartEvent }
  | { readonly kind: "call"; readonly start: ToolCallStartEvent }
  | { readonly kind: "unanswered"; readonly start: ToolCallStartEvent }
  | { readonly kind: "step"; readonly start: StepStartedEvent }
  | { readonly kind: "subagent"; readonly start: SubagentStartedEvent };

/** A step is known by its owner and its name; without owner it belongs to the agent itself. */
function stepKey(owner: string | undefined, name: string): string {
  return owner === undefined ? `step/${name}` : `step:${owner.length}:${owner}/${name}`;
}

/** Follows what a run has open, event by event, at constant cost each. Must see every event of the run. */
export class OpenConstructTracker {
  readonly #frontEndTools: ReadonlySet<string>;
  /** In the order of their start; a call moves to the end when it ends without result. */
  readonly #started = new Map<string, Started>();
  /** Calls that need no made-up result: they have one, or a MESSAGES_SNAPSHOT left the call out. */
  readonly #answered = new Set<string>();
  #snapshot: OpenConstructs | undefined;
  #stale = false;

  /** @param frontEndTools names of the tools in `input.tools`, whose calls the page answers */
  constructor(frontEndTools: ReadonlySet<string> = new Set()) {
    this.#frontEndTools = frontEndTools;
  }

  note(event: BaseEvent): void {
    const e = event as AGUIEvent;
    switch (e.type) {
      case EventType.TEXT_MESSAGE_START:
        return this.#start(`text/${e.messageId}`, { kind: "text", start: e });
      case EventType.TEXT_MESSAGE_END:
        return this.#end(`text/${e.messageId}`);
      case EventType.REASONING_START:
        return this.#start(`span/${e.messageId}`, { kind: "span", start: e });
      case EventType.REASONING_END:
        return this.#end(`span/${e.messageId}`);
      case EventType.REASONING_MESSAGE_START:
        return this.#start(`reasoning/${e.messageId}`, { kind: "reasoning", start: e });
      case EventType.REASONING_MESSAGE_END:
        return this.#end(`reasoning/${e.messageId}`);
      case EventType.TOOL_CALL_START:
        return this.#start(`call/${e.toolCallId}`, { kind: "call", start: e });
      case EventType.TOOL_CALL_END:
        return this.#callEnded(e.toolCallId);
      case EventType.TOOL_CALL_RESULT:
        return this.#answer(e.toolCallId);
      case EventType.STEP_STARTED:
        return this.#start(stepKey(e.subagentRunId, e.stepName), { kind: "step", start: e });
      case EventType.STEP_FINISHED:
        return this.#end(stepKey(e.subagentRunId, e.stepName));
      case EventType.SUBAGENT_STARTED:
        return this.#start(`subagent/${e.subagentRunId}`, { kind: "subagent", start: e });
      case EventType.SUBAGENT_FINISHED:
      case EventType.SUBAGENT_ERROR:
        return this.#end(`subagent/${e.subagentRunId}`);
      case EventType.MESSAGES_SNAPSHOT:
        return this.#messagesReplaced(e.messages);
      case EventType.RUN_STARTED:
        this.#started.clear();
        this.#answered.clear();
        this.#stale = true;
        // A front end that answers a call of an earlier run sends the result with the input; the call may start again.
        for (const message of e.input?.messages ?? [])
          if (message.role === "tool") this.#answered.add(message.toolCallId);
        return;
      default:
        return;
    }
  }

  /** What is open now; `undefined` when nothing is. The same object until something changes. */
  snapshot(): OpenConstructs | undefined {
    if (this.#stale) {
      this.#stale = false;
      this.#snapshot = this.#started.size === 0 ? undefined : this.#collect();
    }
    return this.#snapshot;
  }

  /** Everything that is open, and the calls that ended without result, in the order of start. */
  started(): IterableIterator<Started> {
    return this.#started.values();
  }

  #start(key: string, started: Started): void {
    this.#started.set(key, started);
    this.#stale = true;
  }

  #end(key: string): void {
    if (this.#started.delete(key)) this.#stale = true;
  }

  #callEnded(toolCallId: string): void {
    const key = `call/${toolCallId}`;
    const started = this.#started.get(key);
    if (started?.kind !== "call") return;
    this.#end(key);
    if (!this.#answered.has(toolCallId)) {
      this.#start(`unanswered/${toolCallId}`, { kind: "unanswered", start: started.start });
    }
  }

  #answer(toolCallId: string): void {
    this.#answered.add(toolCallId);
    this.#end(`unanswered/${toolCallId}`);
    if (this.#started.has(`call/${toolCallId}`)) this.#stale = true;
  }

  /** A snapshot may bring results, and may leave calls out: a result made up for those would answer nothing. */
  #messagesReplaced(messages: readonly Message[]): void {
    const waiting: string[] = [];
    for (const { kind, start } of this.#started.values()) {
      if (kind === "call" || kind === "unanswered") waiting.push(start.toolCallId);
    }
    if (waiting.length === 0) return;
    const called = new Set<string>();
    for (const message of messages) {
      if (message.role === "tool") this.#answer(message.toolCallId);
      else if (message.role === "assistant") for (const call of message.toolCalls ?? []) called.add(call.id);
    }
    for (const toolCallId of waiting) if (!called.has(toolCallId)) this.#answer(toolCallId);
  }

  #call(start: ToolCallStartEvent): OpenToolCall {
    return {
      toolCallId: start.toolCallId,
      ...(this.#frontEndTools.has(start.toolCallName) ? { frontEnd: true } : {}),
      ...(this.#answered.has(start.toolCallId) ? { answered: true } : {}),
    };
  }

  #collect(): OpenConstructs {
    const textMessages: string[] = [];
    const reasoningSpans: string[] = [];
    const reasoningMessages: string[] = [];
    const toolCalls: OpenToolCall[] = [];
    const unanswered: OpenToolCall[] = [];
    const steps: { stepName: string; subagentRunId?: string }[] = [];
    const subagents: string[] = [];
    for (const { kind, start } of this.#started.values()) {
      if (kind === "text") textMessages.push(start.messageId);
      else if (kind === "span") reasoningSpans.push(start.messageId);
      else if (kind === "reasoning") reasoningMessages.push(start.messageId);
      else if (kind === "call") toolCalls.push(this.#call(start));
      else if (kind === "unanswered") unanswered.push(this.#call(start));
      else if (kind === "subagent") subagents.push(start.subagentRunId);
      else {
        const { stepName, subagentRunId } = start;
        steps.push(subagentRunId === undefined ? { stepName } : { stepName, subagentRunId });
      }
    }
    return { textMessages, reasoningSpans, reasoningMessages, toolCalls, unanswered, steps, subagents };
  }
}
