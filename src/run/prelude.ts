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

/**
 * Snapshots that leave a reader with a single message, which every further {@link messagesSnapshot} removes. An empty
 * snapshot would not do: it keeps reasoning.
 */
export function forgetMessages(id: string): BaseEvent[] {
  return [
    messagesSnapshot([{ id, role: "reasoning", content: "" }]),
    messagesSnapshot([{ id, role: "activity", activityType: "", content: {} }]),
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
