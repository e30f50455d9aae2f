import type { ActivityMessage, AssistantMessage, Message, ToolCall, ToolMessage } from "@ag-ui/client";
import { sameJson } from "../../run/json.js";

/** The messages that have text. */
export type TextMessage = Exclude<Message, ActivityMessage>;

const callsOf = (message: Message): readonly ToolCall[] => (message as Partial<AssistantMessage>).toolCalls ?? []; // only some roles have calls

/**
 * Messages, of which each is replaced where it changes and never written to, so that what was handed out stays as it was.
 * No change but {@link set} and a result between others looks at more than what it changes.
 *
 * Where several messages have one id, or one tool call id, the first in the list counts.
 */
export class MessageTable {
  #items!: Message[];
  /** Handed out: to be copied before it changes. */
  #shown: Message[] | undefined;
  #byId!: Map<string, number>;
  #byCall!: Map<string, number>;

  constructor(messages: readonly Message[]) {
    this.set(messages);
  }

  /** All of them; the same array until they change. */
  get all(): Message[] {
    // A copy: whoever writes to it, against the type, must not reach what comes later.
    return (this.#shown ??= this.#items.slice());
  }

  /** All of them, in an array for the caller alone. */
  copy(): Message[] {
    return this.#items.slice();
  }

  get(id: string): Message | undefined {
    const index = this.#byId.get(id);
    return index === undefined ? undefined : this.#items[index];
  }

  /** The message of this id that has text; none where it is an activity. */
  text(id: string): TextMessage | undefined {
    const message = this.get(id);
    return message?.role === "activity" ? undefined : message;
  }

  /** The message that holds the tool call. */
  ownerOf(toolCallId: string): AssistantMessage | undefined {
    const index = this.#byCall.get(toolCallId);
    return index === undefined ? undefined : (this.#items[index] as AssistantMessage); // it has calls
  }

  call(toolCallId: string): ToolCall | undefined {
    return this.ownerOf(toolCallId)?.toolCalls?.find(({ id }) => id === toolCallId);
  }

  /** Puts a message into the place of the one with its id. */
  put(message: Message): void {
    const index = this.#byId.get(message.id);
    if (index === undefined) return this.append(message);
    this.#putAt(index, message);
  }

  putCall(call: ToolCall): void {
    const index = this.#byCall.get(call.id);
    const owner = this.ownerOf(call.id);
    if (index === undefined || owner === undefined) return;
    const toolCalls = [...callsOf(owner)];
    toolCalls[toolCalls.findIndex(({ id }) => id === call.id)] = call;
    this.#shown = undefined;
    this.#items[index] = { ...owner, toolCalls };
  }

  append(message: Message): void {
    this.#shown = undefined;
    this.#index(message, this.#items.push(message) - 1);
  }

  /** Adds a tool result behind the message that issued the call and the results that it already has; else at the end. */
  insertResult(result: ToolMessage): void {
    let at = this.#byCall.get(result.toolCallId);
    if (at === undefined || this.#items[at]!.role !== "assistant") return this.append(result);
    do at++;
    while (this.#items[at]?.role === "tool");
    if (at === this.#items.length) return this.append(result);
    this.set(this.#items.toSpliced(at, 0, result));
  }

  /** Puts other messages into the place of all. One that says the same as the one that was there stays that object. */
  set(messages: readonly Message[]): void {
    const before = this.#byId as Map<string, number> | undefined;
    const items = messages.map((message) => {
      const held = before === undefined ? undefined : this.get(message.id);
      return held !== undefined && sameJson(held, message) ? held : message;
    });
    this.#shown = undefined;
    this.#items = items;
    this.#byId = new Map();
    this.#byCall = new Map();
    items.forEach((message, index) => this.#index(message, index));
  }

  #putAt(index: number, message: Message): void {
    const had = callsOf(this.#items[index]!).length > 0;
    this.#shown = undefined;
    this.#items[index] = message;
    // Calls that are gone may have been of another message as well.
    if (had && callsOf(message).length === 0) this.set(this.#items);
    else this.#index(message, index);
  }

  #index(message: Message, index: number): void {
    if (!this.#byId.has(message.id)) this.#byId.set(message.id, index);
    for (const { id } of callsOf(message)) if (!this.#byCall.has(id)) this.#byCall.set(id, index);
  }
}
