import { EventType } from "@ag-ui/core";
import type {
  BaseEvent,
  Interrupt,
  Message,
  MessagesSnapshotEvent,
  RunStartedEvent,
  State,
  ToolCallStartEvent,
} from "@ag-ui/client";
import { startedEvent } from "./finalize.js";
import { ALL_ACTIVITIES, type Fold } from "./fold.js";
import { lastOf, type MessagePart } from "./message-page.js";
import type { Started } from "./open-constructs.js";
import type { RunView } from "./run-view.js";

/** What {@link settledPrelude} is made of. */
export interface SettledRun {
  readonly runStarted: BaseEvent;
  readonly state: State;
  readonly messages: readonly Message[];
  /** The run's CUSTOM and RAW events. */
  readonly customs: readonly BaseEvent[];
  /** The run's own RUN_FINISHED or RUN_ERROR. */
  readonly terminal: BaseEvent;
  /** Interrupts of an earlier run that are still open, where this one ended in RUN_ERROR. */
  readonly interrupted?: { readonly runId: string; readonly interrupts: readonly Interrupt[] };
}

/**
 * RUN_STARTED without the input's messages. A reader would append them first, and a snapshot keeps the places of held
 * messages: the new ones would stand before the history.
 */
function withoutMessages(runStarted: BaseEvent): BaseEvent {
  const { input } = runStarted as unknown as RunStartedEvent;
  if (!input?.messages?.length) return runStarted;
  return { ...runStarted, input: { ...input, messages: [] } };
}

function messagesSnapshot(messages: readonly Message[]): MessagesSnapshotEvent {
  return { type: EventType.MESSAGES_SNAPSHOT, messages: [...messages], metadata: ALL_ACTIVITIES };
}

function stateSnapshot(state: State): BaseEvent[] {
  return state === undefined ? [] : [{ type: EventType.STATE_SNAPSHOT, snapshot: state }];
}

/**
 * Snapshots that leave a reader with a single message, which every further {@link messagesSnapshot} removes. An empty
 * snapshot would not do: it keeps reasoning.
 */
function forgetMessages(id: string): BaseEvent[] {
  return [
    messagesSnapshot([{ id, role: "reasoning", content: "" }]),
    messagesSnapshot([{ id, role: "activity", activityType: "", content: {} }]),
  ];
}

/**
 * True when a snapshot alone does not lead a reader from the messages that it holds to these: a snapshot leaves what
 * a reader holds in its order, before everything new, shows the last of several messages with one id in the place of
 * each that the reader holds, and cannot remove the last reasoning.
 */
function mustForget(base: readonly Message[], messages: readonly Message[]): boolean {
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
  if (messages.some(({ role }) => role === "reasoning")) return false;
  return base.some(({ id, role }) => role === "reasoning" && !held.has(id));
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
  /** The reader holds messages that the snapshot would leave in the wrong places. */
  readonly forget?: boolean;
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
export function shownOf({ fold, open }: RunView, limit: number | undefined): MessagePart {
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
export function livePrelude(view: RunView, { limit, forget = false }: Shown = {}): BaseEvent[] {
  const { fold, runStarted } = view;
  if (runStarted === undefined) return [];
  const { messages } = shownOf(view, limit);
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

  return [
    withoutMessages(runStarted),
    ...stateSnapshot(fold.state),
    ...lost,
    ...(forget || lost.length > 0 || mustForget(held, messages)
      ? forgetMessages(`forget-${String(runStarted["runId"])}`)
      : []),
    messagesSnapshot(messages),
    ...view.subagents,
    ...view.customs,
    ...starts,
  ];
}

/** The events that leave a reader of a deleted thread with nothing. `id`: run id of these events. */
export function emptyPrelude(threadId: string, id: string): BaseEvent[] {
  return [
    startedEvent(threadId, id),
    ...stateSnapshot({}),
    ...forgetMessages(id),
    messagesSnapshot([]),
    { type: EventType.RUN_FINISHED, threadId, runId: id },
  ];
}

/**
 * The events that rebuild a thread up to the end of its last settled run.
 *
 * @param forget the reader holds messages that the snapshot would leave in the wrong places
 */
export function settledPrelude(run: SettledRun, forget = false): BaseEvent[] {
  const runStarted = withoutMessages(run.runStarted);
  const events: BaseEvent[] = [];
  if (run.interrupted !== undefined) {
    const { threadId } = runStarted as unknown as RunStartedEvent;
    const { runId, interrupts } = run.interrupted;
    events.push(startedEvent(threadId, runId), {
      type: EventType.RUN_FINISHED,
      threadId,
      runId,
      outcome: { type: "interrupt", interrupts },
    });
  }
  events.push(
    runStarted,
    ...stateSnapshot(run.state),
    ...(forget ? forgetMessages(`forget-${String(runStarted["runId"])}`) : []),
    messagesSnapshot(run.messages),
    ...run.customs,
    run.terminal,
  );
  return events;
}
