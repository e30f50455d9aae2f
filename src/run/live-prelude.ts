import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message, ToolCallStartEvent } from "@ag-ui/client";
import type { Fold } from "./fold.js";
import { lastOf, type MessagePart } from "./message-page.js";
import type { Started } from "./open-constructs.js";
import { forgetMessages, forgetReasoning, messagesSnapshot, stateSnapshot, withoutMessages } from "./prelude.js";
import type { RunView } from "./run-view.js";

/**
 * True when a snapshot does not put these messages into their order: it leaves what a reader holds in its order, before
 * everything new, and shows the last of several messages with one id in the place of each that the reader holds.
 */
function areMisplaced(base: readonly Message[], messages: readonly Message[]): boolean {
  const places = new Map(base.map(({ id }, place) => [id, place]));
  if (places.size < base.length) return true;
  const held = new Set<string>();
  let last = -1;
  let anyNew = false;
  for (const { id } of messages) {
    if (held.has(id)) return true;
    held.add(id);
    const place = places.get(id);
    if (place === undefined) anyNew = true;
    else if (anyNew || place < last) return true;
    else last = place;
  }
  return false;
}

/**
 * What comes before a snapshot that is to lead a reader from the messages that it holds to these.
 *
 * @param unsure it may hold other reasoning too
 */
export function forgetBefore(
  base: readonly Message[],
  messages: readonly Message[],
  runId: string,
  unsure = false,
): BaseEvent[] {
  // Nothing changes the order of what is shown: it has to go first.
  if (areMisplaced(base, messages)) return forgetMessages(runId);
  const stays = new Set(messages.map((message) => message.id));
  const isLeft = base.some((message) => message.role === "reasoning" && !stays.has(message.id));
  return unsure || isLeft ? forgetReasoning(runId, messages) : [];
}

/** The message, if a start of this kind must have its owner. */
function sameKind(message: Message | undefined, kind: "text" | "reasoning"): Message | undefined {
  if (message === undefined || message.role === "activity") return undefined;
  return (message.role === "reasoning") === (kind === "reasoning") ? message : undefined;
}

/**
 * Repeats a start of something that the messages already show. It must not change them, so it has no metadata, and no
 * owner that contradicts the message.
 */
function again(start: Started["start"], shown: Message | undefined): BaseEvent {
  const { metadata: _, subagentRunId, ...rest } = start;
  const contradicts = shown !== undefined && shown.subagentRunId !== subagentRunId;
  return subagentRunId === undefined || contradicts ? rest : { ...rest, subagentRunId };
}

/** Repeats the start of a tool call, as the messages show the call now. */
function callAgain(start: ToolCallStartEvent, fold: Fold): BaseEvent {
  const shown = fold.list.call(start.toolCallId);
  if (shown === undefined) return start;
  const { parentMessageId: _, ...rest } = start;
  const parent = shown.owner.id === start.toolCallId ? {} : { parentMessageId: shown.owner.id };
  return again({ ...rest, ...parent, toolCallName: shown.call.function.name }, shown.owner);
}

/** How much a reader is shown of the messages. */
export interface Shown {
  /** At most this many of the last ones, and all that the live run has open or has added at the end. Absent: all. */
  readonly limit?: number;
  /** The reader may hold reasoning of another branch. */
  readonly forget?: boolean;
}

export interface LivePrelude {
  readonly events: BaseEvent[];
  /** There are messages before those that it shows. */
  readonly earlier: boolean;
}

/** The message that a repeated start belongs to. */
function ownerOf(fold: Fold, { kind, start }: Started): Message | undefined {
  switch (kind) {
    case "text":
    case "reasoning":
    case "span":
      return fold.list.get(start.messageId);
    case "call":
    case "unanswered":
      return fold.list.call(start.toolCallId)?.owner;
    default:
      return undefined;
  }
}

/**
 * The part of a live run's messages that a snapshot shows. It includes what is open, because its deltas continue, and what
 * the run has added at the end.
 */
function shownOf({ fold, open }: RunView, limit: number | undefined): MessagePart {
  const { messages } = fold;
  const { touched } = fold.list;
  if (limit === undefined) return { messages, earlier: false };
  let start = Math.max(0, messages.length - limit);
  let own = messages.length;
  while (own > 0 && touched.has(messages[own - 1]!.id)) own--;
  start = Math.min(start, own);
  const inside = new Set(messages.slice(start).map(({ id }) => id));
  for (const started of open.started()) {
    const owner = ownerOf(fold, started);
    if (owner === undefined || inside.has(owner.id)) continue;
    start = Math.min(
      start,
      messages.findIndex(({ id }) => id === owner.id),
    );
  }
  return lastOf(messages, messages.length - start);
}

/**
 * The events that bring a reader of the thread's settled history up to a live run's last event. With the run's further
 * events it then rebuilds exactly what all events of the run give.
 *
 * They share live parts of the fold: copy or serialise them before the fold goes on.
 */
export function livePrelude(view: RunView, { limit, forget = false }: Shown = {}): LivePrelude {
  const { fold, runStarted } = view;
  if (runStarted === undefined) return { events: [], earlier: false };
  const { messages, earlier } = shownOf(view, limit);
  const runId = String(runStarted["runId"]);
  const held = limit === undefined ? fold.list.base : lastOf(fold.list.base, limit).messages;

  // A snapshot in the middle of a run may leave out what is still open. A reader must see its start, or verification
  // rejects its deltas, and must not show it: so the start comes before the snapshot.
  const lost: BaseEvent[] = [];
  const starts: BaseEvent[] = [];
  for (const { kind, start } of view.open.started()) {
    switch (kind) {
      case "text":
      case "reasoning": {
        const shown = fold.list.get(start.messageId);
        if (shown === undefined) lost.push(start);
        else starts.push(again(start, sameKind(shown, kind)));
        break;
      }
      case "call":
        (fold.list.call(start.toolCallId) === undefined ? lost : starts).push(callAgain(start, fold));
        break;
      case "unanswered":
        // It has ended, and is repeated all the same: readers find unanswered calls by their starts.
        (fold.list.call(start.toolCallId) === undefined ? lost : starts).push(callAgain(start, fold), {
          type: EventType.TOOL_CALL_END,
          toolCallId: start.toolCallId,
        });
        break;
      case "span":
        starts.push(again(start, sameKind(fold.list.get(start.messageId), "reasoning")));
        break;
      case "step":
        starts.push(start);
        break;
      case "subagent":
        break;
    }
  }

  const events = [
    withoutMessages(runStarted),
    ...stateSnapshot(fold.state),
    ...lost,
    ...(lost.length > 0 ? forgetMessages(runId) : forgetBefore(held, messages, runId, forget)),
    messagesSnapshot(messages),
    ...view.subagents,
    ...view.customs,
    ...starts,
  ];
  return { events, earlier };
}
