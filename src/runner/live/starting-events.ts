import { EventType, PROTOCOL_VERSION } from "@ag-ui/core";
import type { BaseEvent, Message, RunAgentInput, RunStartedEvent } from "@ag-ui/client";
import type { InputField } from "../agent/accept.js";

/** Dropped from an agent's echo of its input unless `recordInput` names them: nobody asked to store them. */
const ASKED_FOR: readonly InputField[] = ["context", "forwardedProps", "state"];

/** Fields that older readers require and 1.0 omits when empty. */
const EMPTY = { tools: [], context: [], forwardedProps: {}, state: {} };

/** The first events of a run in the log. */
export function startingEvents(start: {
  /** The agent's own RUN_STARTED. */
  readonly given: BaseEvent | undefined;
  readonly request: RunAgentInput;
  readonly newMessages: readonly Message[];
  /** The thread or the request has a message of this id. */
  readonly isKnown: (id: string) => boolean;
  readonly records: readonly InputField[];
  /** Where the run's state is not the thread's. */
  readonly state?: unknown;
  /** Where the run starts a branch: all its messages. */
  readonly branchMessages?: readonly Message[];
  /** Where the run goes on with a broken one: see `InputPlan`. */
  readonly snapshot?: readonly BaseEvent[];
}): BaseEvent[] {
  const { given, request, newMessages, records, state, branchMessages } = start;
  const { threadId, runId, parentRunId, resume } = request;
  const own = given as RunStartedEvent | undefined; // its type says so
  const echo: Partial<RunAgentInput> = { ...own?.input };
  for (const field of ASKED_FOR) if (!records.includes(field)) delete echo[field];
  const { messages, others } = withOthers(newMessages, own?.input?.messages ?? [], start.isKnown);
  const started = {
    type: EventType.RUN_STARTED,
    ...own,
    threadId,
    runId,
    // The log is of this version, whatever the agent speaks: its events were checked and translated.
    protocolVersion: PROTOCOL_VERSION,
    input: {
      ...EMPTY,
      ...Object.fromEntries(records.map((field) => [field, request[field] as unknown])),
      ...echo,
      threadId,
      runId,
      ...(parentRunId !== undefined && { parentRunId }),
      messages,
      ...(resume !== undefined && { resume }),
    },
  };
  const events: BaseEvent[] = [started];
  if ("state" in start) events.push({ type: EventType.STATE_SNAPSHOT, snapshot: state } as BaseEvent);
  if (branchMessages !== undefined) {
    events.push({ type: EventType.MESSAGES_SNAPSHOT, messages: [...branchMessages, ...others] } as BaseEvent);
  }
  return [...events, ...(start.snapshot ?? [])];
}

/** The new messages and those that only the agent names, in the agent's order. */
function withOthers(
  newMessages: readonly Message[],
  named: readonly Message[],
  isKnown: (id: string) => boolean,
): { readonly messages: Message[]; readonly others: readonly Message[] } {
  const left = new Map(newMessages.map((message) => [message.id, message]));
  const messages: Message[] = [];
  const others = new Map<string, Message>();
  for (const message of named) {
    const its = left.get(message.id);
    if (its !== undefined) messages.push(its);
    else if (!isKnown(message.id) && !others.has(message.id)) {
      others.set(message.id, message);
      messages.push(message);
    }
    left.delete(message.id);
  }
  return { messages: [...messages, ...left.values()], others: [...others.values()] };
}
