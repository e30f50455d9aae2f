import type { ActivityMessage, AssistantMessage, Message, Metadata, ToolCall, ToolMessage } from "@ag-ui/client";
import { assignOwn, sameJson } from "./json.js";

/** The current object of a message. All of its calls share it, so that a copy is noted once. */
interface Place {
  message: AssistantMessage;
}

interface PlacedCall {
  readonly place: Place;
  readonly call: ToolCall;
}

/**
 * Index of a thread's messages and tool calls. Handed on from one list to the next, so that no list walks the whole
 * history; see {@link MessageList.handOn}.
 */
export interface MessageIndex {
  readonly byId: Map<string, Message>;
  readonly calls: Map<string, PlacedCall>;
  /** Several messages have one id. */
  readonly doubled: boolean;
}

/** Removes a `null` owner, which older producers send for an absent one. */
export function withoutNullTag<T extends object>(tagged: T): T {
  if ((tagged as { subagentRunId?: string | null }).subagentRunId !== null) return tagged;
  const copy: { subagentRunId?: string | null } = { ...tagged };
  delete copy.subagentRunId;
  return copy as T;
}

function toolCallsOf(message: Message): ToolCall[] {
  return (message as Partial<AssistantMessage>).toolCalls ?? [];
}

/** What a snapshot that has none of them leaves in the list: reasoning, perhaps activities. */
const kindOf = ({ role }: Message): "reasoning" | "activity" | "other" =>
  role === "reasoning" || role === "activity" ? role : "other";

/**
 * Messages under change, indexed so that no event needs a search. Messages from outside are never written to: the first
 * write replaces one by a copy.
 *
 * Where several messages have one id, or one tool call id, the first in the list counts.
 */
export class MessageList {
  readonly #base: readonly Message[];
  /** What was added to the base, while the base itself is unchanged. */
  #tail: Message[] = [];
  /** The whole list, once it was needed. */
  #whole: Message[] | undefined;
  /** The index of the base, until something of it is removed; `#byId` and `#calls` take precedence. */
  #below: MessageIndex | undefined;
  #byId = new Map<string, Message>();
  #calls = new Map<string, PlacedCall>();
  /** Of messages with calls that this list has indexed itself. */
  #places = new WeakMap<Message, Place>();
  #doubled = false;
  /** Messages, tool calls and metadata that were made here and not handed out: they may be written to. */
  #owned = new WeakSet<object>();
  /** By the message with their call: results that belong into the middle of the list and are not in it yet. */
  #waiting = new Map<Message, ToolMessage[]>();
  /** Ids of waiting results that other messages have too: which of them is the first is not known yet. */
  readonly #unsure = new Set<string>();
  /** The last message that is no tool result; undefined: not looked up. */
  #lastSpoken: Message | undefined;
  /** How many messages there are of each kind; NaN: not counted. */
  #counts = { reasoning: NaN, activity: NaN, other: NaN };
  readonly #touched = new Set<string>();
  #rewritten = false;
  #version = 0;

  /**
   * @param base must not change any more
   * @param index of `base`; only read until it is handed on
   */
  constructor(base: readonly Message[], index?: MessageIndex) {
    this.#base = base;
    if (index === undefined) this.#reindex();
    else {
      this.#below = index;
      this.#doubled = index.doubled;
    }
  }

  /** The index of this list, which must not change any more. Replaces that of its base. */
  handOn(): MessageIndex {
    if (this.#below === undefined) return { byId: this.#byId, calls: this.#calls, doubled: this.#doubled };
    const { byId, calls } = this.#below;
    for (const [id, message] of this.#byId) byId.set(id, message);
    for (const [id, call] of this.#calls) calls.set(id, call);
    return { byId, calls, doubled: this.#doubled };
  }

  /** Several messages have one id. */
  get doubled(): boolean {
    return this.#doubled;
  }

  /** Live. */
  get items(): readonly Message[] {
    return this.#items();
  }

  /** The messages that the list started from. */
  get base(): readonly Message[] {
    return this.#base;
  }

  /** Ids of messages that were added, replaced or changed, and that are still there. */
  get touched(): ReadonlySet<string> {
    return this.#touched;
  }

  /**
   * A message of the base was removed, so the touched messages do not say everything. One may have been inserted
   * between those of the base: that alone does not count.
   */
  get rewritten(): boolean {
    return this.#rewritten;
  }

  /** Grows with every change. */
  get version(): number {
    return this.#version;
  }

  /** Live; the message of this id. */
  get(id: string): Message | undefined {
    if (this.#unsure.has(id)) this.#reindex();
    return this.#byId.get(id) ?? this.#below?.byId.get(id);
  }

  /** Live; a tool call with the message that holds it. */
  call(toolCallId: string): { readonly owner: AssistantMessage; readonly call: ToolCall } | undefined {
    const found = this.#placedCall(toolCallId);
    return found && { owner: found.place.message, call: found.call };
  }

  #placedCall(toolCallId: string): PlacedCall | undefined {
    return this.#calls.get(toolCallId) ?? this.#below?.calls.get(toolCallId);
  }

  /** The message of this id, to be changed in place; undefined for activities, whose content is no text. */
  writableText(id: string): Exclude<Message, ActivityMessage> | undefined {
    const message = this.get(id);
    return message === undefined || message.role === "activity" ? undefined : this.write(message);
  }

  /** The tool call of this id, to be changed in place. */
  writableCall(toolCallId: string): ToolCall | undefined {
    const found = this.call(toolCallId);
    if (found === undefined) return undefined;
    const owner = this.write(found.owner);
    const { call } = found;
    if (this.#owned.has(call)) return call;
    const copy = { ...call, function: { ...call.function } };
    this.#owned.add(copy);
    const calls = toolCallsOf(owner);
    calls[calls.lastIndexOf(call)] = copy;
    this.#calls.set(toolCallId, { place: this.#placeOf(owner), call: copy });
    return copy;
  }

  /** The messages as they are now; later changes go to copies. */
  share(): Message[] {
    this.#owned = new WeakSet();
    return this.#items().slice();
  }

  /** Replaces all messages. One that equals the held one keeps its object. */
  reset(messages: readonly Message[]): void {
    this.#whole = messages.map((message) => {
      const held = this.get(message.id);
      return held !== undefined && sameJson(held, message) ? held : message;
    });
    this.#rewritten = true;
    this.#version++;
    this.#reindex();
  }

  /** The message or the copy that replaces it, to be changed in place. */
  write<T extends Message>(message: T): T {
    this.#version++;
    // L17: copied once, not with each event.
    if (this.#owned.has(message)) return message;
    const { toolCalls } = message as Partial<AssistantMessage>;
    const copy = { ...message, ...(toolCalls !== undefined && { toolCalls: [...toolCalls] }) };
    this.#put(message, copy);
    return copy;
  }

  /** Adds a message that was made for this list. */
  append(message: Message): void {
    this.#owned.add(message);
    this.adopt(message);
  }

  /** Adds a message from outside. */
  adopt(message: Message): void {
    this.#added(message);
    if (message.role !== "tool") this.#lastSpoken = message;
    (this.#whole ?? this.#tail).push(message);
  }

  /** Replaces a message by one that was made for this list. */
  replace(old: Message, fresh: Message): void {
    this.#version++;
    this.#owned.add(fresh);
    // It may be a waiting result, or end the results that later ones are put behind.
    if (old.role === "tool") this.#items();
    this.#lastSpoken = undefined;
    this.#put(old, fresh);
    if (toolCallsOf(old).length > 0) this.#reindex();
  }

  addCall(owner: AssistantMessage, call: ToolCall): void {
    (owner.toolCalls ??= []).push(call);
    this.#owned.add(call);
    if (this.#placedCall(call.id) === undefined) this.#calls.set(call.id, { place: this.#placeOf(owner), call });
  }

  /** Adds a tool result after the message with its call and the results that follow it; else at the end. */
  insertResult(result: ToolMessage): void {
    const owner = this.call(result.toolCallId)?.owner;
    if (owner?.role !== "assistant" || owner === this.#last()) return this.append(result);
    this.#owned.add(result);
    if (this.#has(result.id)) this.#unsure.add(result.id);
    this.#added(result);
    const waiting = this.#waiting.get(owner);
    if (waiting === undefined) this.#waiting.set(owner, [result]);
    else waiting.push(result);
  }

  /** Merges metadata into a message or tool call of this list, key by key, the last one winning. */
  mergeMetadata(target: { metadata?: Metadata }, metadata: Metadata | undefined): void {
    if (metadata === undefined) return;
    let own = target.metadata;
    if (own === undefined || !this.#owned.has(own)) {
      own = {};
      assignOwn(own, target.metadata ?? null);
      this.#owned.add(own);
      target.metadata = own;
    }
    assignOwn(own, metadata);
  }

  /**
   * MESSAGES_SNAPSHOT: its messages replace held ones or are added; held ones that it lacks are removed, except reasoning
   * where it has none, and activities that it does not cover.
   *
   * @param activityTypes the types of activity that it covers, `null` for all; `undefined`: all where it has any
   */
  merge(snapshot: readonly Message[], activityTypes: readonly string[] | null | undefined): void {
    const incoming = snapshot.map(withoutNullTag);
    const incomingById = new Map(incoming.map((message) => [message.id, message]));
    const ownsReasoning = incoming.some((message) => message.role === "reasoning");
    const ownsActivities = activityTypes === undefined ? incoming.some(({ role }) => role === "activity") : undefined;
    const stays = (message: Message): boolean => {
      if (message.role === "reasoning") return !ownsReasoning;
      if (message.role !== "activity") return false;
      return activityTypes ? !activityTypes.includes(message.activityType) : ownsActivities === false;
    };
    this.#version++;
    const { reasoning, activity, other } = this.#counts;
    const replaced = other + (ownsReasoning ? reasoning : 0) + (ownsActivities === false ? 0 : activity);
    // It changes nothing, so what it leaves alone is not walked. Activities are not counted by type.
    if (
      (!activityTypes || activity === 0) &&
      !this.#doubled &&
      replaced === incoming.length &&
      incomingById.size === replaced &&
      incoming.every((message) => sameJson(this.get(message.id), message))
    )
      return;

    const next: Message[] = [];
    const held = new Set<string>();
    const dropped = new Set<string>();
    for (const message of this.#items()) {
      const fresh = incomingById.get(message.id);
      if (fresh === undefined && !stays(message)) {
        dropped.add(message.id);
        continue;
      }
      held.add(message.id);
      if (fresh === undefined || sameJson(message, fresh)) next.push(message);
      else {
        next.push(fresh);
        this.#touched.add(message.id);
      }
    }
    for (const message of incoming) {
      if (held.has(message.id)) continue;
      next.push(message);
      this.#touched.add(message.id);
    }
    for (const id of dropped) if (!held.has(id)) this.#touched.delete(id);
    this.#rewritten ||= dropped.size > 0 && this.#base.some(({ id }) => dropped.has(id));
    this.#whole = next;
    this.#reindex();
  }

  /** The whole list, without the results that wait. */
  #placed(): Message[] {
    this.#whole ??= [...this.#base, ...this.#tail];
    return this.#whole;
  }

  #items(): Message[] {
    const placed = this.#placed();
    if (this.#waiting.size === 0) return placed;
    // An owner may stand there twice: the last one counts.
    const owners = new Map(placed.map((message, at) => [message, at]));
    const items: Message[] = [];
    let due: readonly Message[] = [];
    for (const [at, message] of placed.entries()) {
      if (message.role !== "tool" && due.length > 0) {
        for (const result of due) items.push(result);
        due = [];
      }
      items.push(message);
      if (owners.get(message) === at) due = this.#waiting.get(message) ?? due;
    }
    this.#waiting.clear();
    this.#whole = items.concat(due);
    return this.#whole;
  }

  /** The tail, where the message is in it; else the whole list. */
  #partWith(message: Message): Message[] {
    return this.#whole === undefined && this.#tail.lastIndexOf(message) >= 0 ? this.#tail : this.#placed();
  }

  #has(id: string): boolean {
    return this.#byId.has(id) || this.#below?.byId.has(id) === true;
  }

  #last(): Message | undefined {
    const isSpoken = ({ role }: Message): boolean => role !== "tool";
    this.#lastSpoken ??=
      this.#whole?.findLast(isSpoken) ?? this.#tail.findLast(isSpoken) ?? this.#base.findLast(isSpoken);
    return this.#lastSpoken;
  }

  #added(message: Message): void {
    this.#version++;
    this.#touched.add(message.id);
    this.#counts[kindOf(message)]++;
    if (this.#has(message.id)) this.#doubled = true;
    else this.#byId.set(message.id, message);
    this.#indexCalls(message);
  }

  #put(old: Message, fresh: Message): void {
    const items = this.#partWith(old);
    items[items.lastIndexOf(old)] = fresh;
    this.#owned.add(fresh);
    this.#touched.add(fresh.id);
    this.#counts[kindOf(old)]--;
    this.#counts[kindOf(fresh)]++;
    if (this.#lastSpoken === old) this.#lastSpoken = fresh;
    const waiting = this.#waiting.get(old);
    if (waiting !== undefined && this.#waiting.delete(old)) this.#waiting.set(fresh, waiting);
    if (this.get(old.id) === old) this.#byId.set(fresh.id, fresh);
    const calls = toolCallsOf(fresh);
    const place = this.#places.get(old);
    if (place === undefined) {
      for (const call of calls) {
        if (this.#placedCall(call.id)?.place.message !== old) continue;
        this.#calls.set(call.id, { place: this.#placeOf(fresh as AssistantMessage), call });
      }
    } else {
      place.message = fresh as AssistantMessage; // it has calls
      this.#places.set(fresh, place);
    }
  }

  /** The place of a message that is in this list, its own. */
  #placeOf(message: AssistantMessage): Place {
    let place = this.#places.get(message);
    if (place === undefined) this.#places.set(message, (place = { message }));
    return place;
  }

  #indexCalls(message: Message): void {
    for (const call of toolCallsOf(message)) {
      if (this.#placedCall(call.id) !== undefined) continue;
      this.#calls.set(call.id, { place: this.#placeOf(message as AssistantMessage), call }); // it has calls
    }
  }

  #reindex(): void {
    this.#below = undefined;
    this.#byId = new Map();
    this.#calls = new Map();
    this.#places = new WeakMap();
    this.#doubled = false;
    this.#unsure.clear();
    this.#lastSpoken = undefined;
    this.#counts = { reasoning: 0, activity: 0, other: 0 };
    for (const message of this.#items()) {
      this.#counts[kindOf(message)]++;
      if (this.#byId.has(message.id)) this.#doubled = true;
      else this.#byId.set(message.id, message);
      this.#indexCalls(message);
    }
  }
}
