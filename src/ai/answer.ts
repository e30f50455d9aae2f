import type { AGUIEvent, Metadata, TokenUsage } from "@ag-ui/core";
import { EventType, tokenUsageFromAiSdkUsage } from "@ag-ui/core";
import type { TextStreamPart, ToolSet } from "ai";
import { assignOwn, isRecord } from "../run/json.js";
import { FILE_ACTIVITY, PROVIDER_EXECUTED } from "./prompt.js";

type Part = TextStreamPart<ToolSet>;
type Shared = Readonly<Record<string, unknown>>;

/** A call that the model has made, complete. */
export interface MadeCall {
  readonly toolCallId: string;
  readonly name: string;
  /** Checked by the tool's schema. */
  readonly args: unknown;
  /** Why it cannot be executed: the arguments are malformed, or there is no such tool. */
  readonly invalid?: unknown;
}

/** How an answer ended, by the provider's last word. */
export interface Ending {
  readonly finishReason: string;
  /** The provider said so, and its stream was not just over. */
  readonly isSaid: boolean;
  readonly contentType: string | undefined;
}

/** What an answer needs of its run. */
export interface AnswerParts {
  readonly makeId: () => string;
  /** The thread has a call of this id: servers count from 0 in each answer, or in each conversation. */
  readonly isKnownCall: (toolCallId: string) => boolean;
  readonly model: { readonly provider?: string; readonly model?: string };
  /** The message that the first text goes on with. */
  readonly continues?: string;
  /** Calls may be repaired when they are complete, their names as well: they are told then. */
  readonly repairs?: boolean;
}

interface OpenText {
  readonly messageId: string;
  isOpen: boolean;
}

interface OpenCall {
  /** Set when its START is told. */
  toolCallId?: string;
  readonly name: string;
  /** The provider's server runs it. */
  isServers: boolean;
  isOpen: boolean;
  /** Its arguments came as they were written. */
  hasArgs: boolean;
  /** They are told when the call is complete: they are no JSON, or may be repaired. */
  readonly isHeld: boolean;
}

/** Turns the parts of one answer of a model into events. */
export class Answer {
  readonly calls: MadeCall[] = [];
  usage: TokenUsage | undefined;
  ending: Ending | undefined;
  /** Of all messages of this answer. */
  text = "";
  private readonly texts = new Map<string, OpenText>();
  private readonly openCalls = new Map<string, OpenCall>();
  private readonly reasonings = new Map<string, OpenText>();
  /** By a part's id: what its provider wants back. */
  private readonly shared = new Map<string, Record<string, unknown>>();
  private sources: Shared[] = [];
  /** The message of the first text, and of calls that no text precedes. */
  private readonly mainId: string;
  private lastText: string | undefined;
  /** The last text's TEXT_MESSAGE_END waits for how the answer ended, which belongs into it. */
  private held: string | undefined;

  constructor(private readonly parts: AnswerParts) {
    this.mainId = parts.continues ?? parts.makeId();
  }

  /** Nothing of an answer has come. */
  get isEmpty(): boolean {
    return this.texts.size + this.openCalls.size + this.reasonings.size === 0;
  }

  /** The events that a part stands for. */
  *events(part: Part): Generator<AGUIEvent> {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        this.keep(`text/${part.id}`, part.providerMetadata);
        if (part.type === "text-delta") yield* this.textDelta(part.id, part.text);
        else if (part.type === "text-end") yield* this.textEnd(part.id);
        return;
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        this.keep(`reasoning/${part.id}`, part.providerMetadata);
        if (part.type === "reasoning-delta") yield* this.reasoningDelta(part.id, part.text);
        else if (part.type === "reasoning-end") yield* this.reasoningEnd(part.id);
        return;
      case "tool-input-start":
        yield* this.callStart(part.id, part.toolName, part.providerExecuted === true, part.inputEncoding === "text");
        return;
      case "tool-input-delta":
        return yield* this.callArgs(part.id, part.delta);
      case "tool-call":
        return yield* this.call(part);
      case "tool-result":
        if (part.providerExecuted === true && part.preliminary !== true)
          yield* this.result(part.toolCallId, part.output, { [PROVIDER_EXECUTED]: true });
        return;
      case "tool-error":
        if (part.providerExecuted === true) yield* this.result(part.toolCallId, part.error);
        return;
      case "source": {
        const { type: _type, ...source } = part;
        this.sources.push(source);
        return;
      }
      case "file":
      case "reasoning-file":
        return yield* this.file(part.file);
      case "finish-step":
        this.usage = tokenUsageFromAiSdkUsage(part.usage, this.parts.model);
        this.ending = {
          finishReason: part.finishReason,
          isSaid:
            part.rawFinishReason !== undefined || (part.finishReason !== "other" && part.finishReason !== "error"),
          contentType: part.response.headers?.["content-type"],
        };
        return yield* this.finish();
      default:
        return;
    }
  }

  private keep(key: string, metadata: Shared | undefined): void {
    if (metadata === undefined) return;
    let kept = this.shared.get(key);
    if (kept === undefined) this.shared.set(key, (kept = {}));
    // A signature comes in a part of its own, behind the ids.
    for (const [provider, values] of Object.entries(metadata)) {
      const merged = {};
      for (const from of [kept[provider], values]) if (isRecord(from)) assignOwn(merged, from);
      assignOwn(kept, { [provider]: merged });
    }
  }

  private *encrypted(key: string, subtype: "message" | "tool-call", entityId: string): Generator<AGUIEvent> {
    const kept = this.shared.get(key);
    if (kept === undefined || Object.keys(kept).length === 0) return;
    yield { type: EventType.REASONING_ENCRYPTED_VALUE, subtype, entityId, encryptedValue: JSON.stringify(kept) };
  }

  private *textDelta(id: string, delta: string): Generator<AGUIEvent> {
    if (delta === "") return;
    let text = this.texts.get(id);
    if (text === undefined || !text.isOpen) {
      yield* this.release();
      // In one message the calls would stand behind a text that followed them.
      const isFirst = this.lastText === undefined && this.openCalls.size === 0;
      text = { messageId: isFirst ? this.mainId : this.parts.makeId(), isOpen: true };
      this.texts.set(id, text);
      this.lastText = text.messageId;
      yield { type: EventType.TEXT_MESSAGE_START, messageId: text.messageId, role: "assistant" };
    }
    this.text += delta;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: text.messageId, delta };
  }

  private *textEnd(id: string): Generator<AGUIEvent> {
    const text = this.texts.get(id);
    if (text === undefined || !text.isOpen) return;
    text.isOpen = false;
    yield* this.encrypted(`text/${id}`, "message", text.messageId);
    yield* this.release();
    this.held = text.messageId;
  }

  /** Ends the text that waits for the answer's end. */
  private *release(metadata?: Metadata): Generator<AGUIEvent> {
    if (this.held === undefined) return;
    const messageId = this.held;
    this.held = undefined;
    yield { type: EventType.TEXT_MESSAGE_END, messageId, ...(metadata && { metadata }) };
  }

  private *reasoningDelta(id: string, delta: string): Generator<AGUIEvent> {
    if (delta === "") return;
    const { messageId } = yield* this.reasoning(id);
    yield { type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta };
  }

  private *reasoning(id: string): Generator<AGUIEvent, OpenText> {
    const held = this.reasonings.get(id);
    if (held?.isOpen === true) return held;
    const begun = { messageId: this.parts.makeId(), isOpen: true };
    this.reasonings.set(id, begun);
    yield { type: EventType.REASONING_START, messageId: begun.messageId };
    yield { type: EventType.REASONING_MESSAGE_START, messageId: begun.messageId, role: "reasoning" };
    return begun;
  }

  private *reasoningEnd(id: string): Generator<AGUIEvent> {
    const key = `reasoning/${id}`;
    // Reasoning that is told to nobody has a value for its provider only.
    if (!this.reasonings.has(id) && !this.shared.has(key)) return;
    const open = yield* this.reasoning(id);
    open.isOpen = false;
    const { messageId } = open;
    yield* this.encrypted(key, "message", messageId);
    yield { type: EventType.REASONING_MESSAGE_END, messageId };
    yield { type: EventType.REASONING_END, messageId };
  }

  private *callStart(id: string, name: string, isServers: boolean, isText: boolean): Generator<AGUIEvent, OpenCall> {
    yield* this.leaveCall(id);
    const repairs = this.parts.repairs === true;
    const open: OpenCall = { name, isServers, isOpen: true, hasArgs: false, isHeld: isText || repairs };
    this.openCalls.set(id, open);
    if (!repairs) yield* this.told(id, open, name);
    return open;
  }

  /** Tells the START of a call once. @returns its id in the thread */
  private *told(id: string, open: OpenCall, toolCallName: string): Generator<AGUIEvent, string> {
    if (open.toolCallId !== undefined) return open.toolCallId;
    const toolCallId = id === "" || this.parts.isKnownCall(id) ? this.parts.makeId() : id;
    open.toolCallId = toolCallId;
    const parentMessageId = this.lastText ?? this.mainId;
    yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName, parentMessageId };
    return toolCallId;
  }

  private *callEnd(open: OpenCall, made: MadeCall): Generator<AGUIEvent> {
    open.isOpen = false;
    const { isServers } = open;
    const { toolCallId } = made;
    yield { type: EventType.TOOL_CALL_END, toolCallId, ...(isServers && { metadata: { [PROVIDER_EXECUTED]: true } }) };
    if (!isServers) this.calls.push(made);
  }

  /** A call that the provider began and never completed: the model is told, and makes it anew. */
  private *leaveCall(id: string): Generator<AGUIEvent> {
    const open = this.openCalls.get(id);
    if (open?.isOpen !== true) return;
    const { name } = open;
    const toolCallId = yield* this.told(id, open, name);
    yield* this.callEnd(open, { toolCallId, name, args: undefined, invalid: "The call is not complete" });
  }

  private *callArgs(id: string, delta: string): Generator<AGUIEvent> {
    const open = this.openCalls.get(id);
    if (open?.isOpen !== true || open.isHeld || delta === "") return;
    open.hasArgs = true;
    const toolCallId = yield* this.told(id, open, open.name);
    yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta };
  }

  private *call(part: Extract<Part, { type: "tool-call" }>): Generator<AGUIEvent> {
    const { toolCallId: id, toolName: name, input: args } = part;
    const isServers = part.providerExecuted === true;
    const begun = this.openCalls.get(id);
    const open = begun?.isOpen === true ? begun : yield* this.callStart(id, name, isServers, false);
    open.isServers = isServers;
    const toolCallId = yield* this.told(id, open, name);
    if (!open.hasArgs) {
      const delta = typeof args === "string" ? args : JSON.stringify(args ?? {});
      if (delta !== "") yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta };
    }
    this.keep(`call/${toolCallId}`, part.providerMetadata);
    yield* this.encrypted(`call/${toolCallId}`, "tool-call", toolCallId);
    yield* this.callEnd(open, { toolCallId, name, args, ...(part.invalid === true && { invalid: part.error }) });
  }

  private *result(id: string, output: unknown, metadata?: Metadata): Generator<AGUIEvent> {
    const toolCallId = this.openCalls.get(id)?.toolCallId ?? id;
    const content = JSON.stringify(output) ?? "null";
    const messageId = this.parts.makeId();
    yield {
      type: EventType.TOOL_CALL_RESULT,
      messageId,
      toolCallId,
      content,
      role: "tool",
      ...(metadata && { metadata }),
    };
  }

  private *file({
    base64: data,
    mediaType,
  }: {
    readonly base64: string;
    readonly mediaType: string;
  }): Generator<AGUIEvent> {
    const messageId = this.parts.makeId();
    yield { type: EventType.ACTIVITY_SNAPSHOT, messageId, activityType: FILE_ACTIVITY, content: { mediaType, data } };
  }

  /** What the provider left open is closed; the last text says how the answer ended. */
  private *finish(): Generator<AGUIEvent> {
    for (const id of this.openCalls.keys()) yield* this.leaveCall(id);
    for (const [id, { isOpen }] of this.reasonings) if (isOpen) yield* this.reasoningEnd(id);
    for (const [id, { isOpen }] of this.texts) if (isOpen) yield* this.textEnd(id);
    const { ending, sources } = this;
    if (ending === undefined || !ending.isSaid) return;
    if (this.held === undefined && sources.length > 0) {
      const messageId = this.lastText ?? this.mainId;
      yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
      this.held = messageId;
    }
    const metadata = { finishReason: ending.finishReason, ...(sources.length > 0 && { sources }) };
    yield* this.release(metadata);
  }
}
