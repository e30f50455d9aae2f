import { EventType } from "@ag-ui/core";
import type { BaseEvent, Interrupt, Message, MessagesSnapshotEvent, RunStartedEvent, State } from "@ag-ui/client";
import { ALL_ACTIVITIES } from "./activity-history.js";
import { startedEvent } from "./finalize.js";

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
export function withoutMessages(runStarted: BaseEvent): BaseEvent {
  const { input } = runStarted as unknown as RunStartedEvent;
  if (!input?.messages?.length) return runStarted;
  return { ...runStarted, input: { ...input, messages: [] } };
}

export function messagesSnapshot(messages: readonly Message[]): MessagesSnapshotEvent {
  return { type: EventType.MESSAGES_SNAPSHOT, messages: [...messages], metadata: ALL_ACTIVITIES };
}

export function stateSnapshot(state: State): BaseEvent[] {
  return state === undefined ? [] : [{ type: EventType.STATE_SNAPSHOT, snapshot: state }];
}

/** What the ids of placeholders begin with. */
const PLACEHOLDER = "forget-";

/**
 * Snapshots that leave a reader with these messages and a placeholder, which every further {@link messagesSnapshot}
 * removes. Without the placeholder they would not do: a snapshot without reasoning keeps all that the reader holds.
 */
export function forgetMessages(runId: string, messages: readonly Message[] = []): BaseEvent[] {
  const id = PLACEHOLDER + runId;
  return [
    messagesSnapshot([...messages, { id, role: "reasoning", content: "" }]),
    messagesSnapshot([...messages, { id, role: "activity", activityType: "", content: {} }]),
  ];
}

/**
 * What comes before a snapshot of these messages, so that it leaves no other reasoning with its reader. None of them is
 * gone meanwhile. Nothing where several have one id: a second snapshot of them would show the last one in each place.
 */
export function forgetReasoning(runId: string, messages: readonly Message[]): BaseEvent[] {
  const isOneEach = new Set(messages.map(({ id }) => id)).size === messages.length;
  const isKept = messages.some(({ role }) => role === "reasoning");
  return isOneEach && !isKept ? forgetMessages(runId, messages) : [];
}

/** Whether it is one of {@link forgetMessages}: its last message is the placeholder. */
export function isForgetting({ messages }: Pick<MessagesSnapshotEvent, "messages">): boolean {
  const last = messages.at(-1);
  if (last?.id.startsWith(PLACEHOLDER) !== true) return false;
  return last.role === "activity" ? last.activityType === "" : last.role === "reasoning" && last.content === "";
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
 * @param forget the reader may hold reasoning of another branch
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
    ...(forget ? forgetReasoning(String(runStarted["runId"]), run.messages) : []),
    messagesSnapshot(run.messages),
    ...run.customs,
    run.terminal,
  );
  return events;
}
