import { EventType, type BaseEvent, type Message, type RunAgentInput } from "@ag-ui/client";

/** What the events of a run are about; `big-state` are the same deltas on a state of 200 KB. */
export type Kind = "text" | "args" | "state" | "big-state";

/** One run. Plain data: it crosses into processes and workers. */
export interface Workload {
  readonly kind: Kind;
  /** Deltas; what opens and ends them comes on top. */
  readonly events: number;
  /** Messages that the thread has before. */
  readonly history: number;
}

const WORD = "word ";
const MESSAGE_LENGTH = 200;
const BIG_STATE_LENGTH = 200_000;

// Plain data, not typed by one version of the protocol: two versions of the client are given the same events.
const event = (type: EventType, fields: object): BaseEvent => ({ type, ...fields });
const started = (threadId: string, runId: string): BaseEvent => event(EventType.RUN_STARTED, { threadId, runId });
const finished = (threadId: string, runId: string): BaseEvent => event(EventType.RUN_FINISHED, { threadId, runId });

/** The messages of a thread with a history, a question and an answer alternately. */
export function historyOf(count: number): Message[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `history-${i}`,
    role: i % 2 === 0 ? "user" : "assistant",
    content: `${i} `.padEnd(MESSAGE_LENGTH, WORD),
  }));
}

function stateOf(kind: Kind): Record<string, unknown> | undefined {
  if (kind !== "state" && kind !== "big-state") return undefined;
  const rows = kind === "state" ? 0 : BIG_STATE_LENGTH / MESSAGE_LENGTH;
  const row = (i: number): string => `${i} `.padEnd(MESSAGE_LENGTH, WORD);
  return { counter: 0, list: [], rows: Array.from({ length: rows }, (_, i) => row(i)) };
}

/** The run that leaves `history` messages behind. */
export const historyEvents = (threadId: string, runId: string, history: number): BaseEvent[] => [
  started(threadId, runId),
  event(EventType.MESSAGES_SNAPSHOT, { messages: historyOf(history) }),
  finished(threadId, runId),
];

function* deltas({ kind, events }: Workload, runId: string): Generator<BaseEvent> {
  if (kind === "text") {
    const messageId = `message-${runId}`;
    yield event(EventType.TEXT_MESSAGE_START, { messageId, role: "assistant" });
    for (let i = 0; i < events; i++) yield event(EventType.TEXT_MESSAGE_CONTENT, { messageId, delta: WORD });
    yield event(EventType.TEXT_MESSAGE_END, { messageId });
  } else if (kind === "args") {
    const toolCallId = `call-${runId}`;
    yield event(EventType.TOOL_CALL_START, { toolCallId, toolCallName: "write" });
    for (let i = 0; i < events; i++) {
      const delta = i === 0 ? '["wor' : i === events - 1 ? 'rds"]' : WORD;
      yield event(EventType.TOOL_CALL_ARGS, { toolCallId, delta });
    }
    yield event(EventType.TOOL_CALL_END, { toolCallId });
  } else {
    // A reader that knows nothing of `input.state` would else fail on the first delta.
    yield event(EventType.STATE_SNAPSHOT, { snapshot: stateOf(kind) });
    for (let i = 0; i < events; i++) {
      const change =
        i % 2 === 0
          ? { op: "replace", path: "/counter", value: i }
          : { op: "add", path: "/list/-", value: `item ${i}` };
      yield event(EventType.STATE_DELTA, { delta: [change] });
    }
  }
}

export const eventsOf = (workload: Workload, threadId: string, runId: string): BaseEvent[] => [
  started(threadId, runId),
  ...deltas(workload, runId),
  finished(threadId, runId),
];

/** What a run is asked with; without a workload, the one that makes the history. As AG-UI clients send it: all messages. */
export function inputOf(threadId: string, runId: string, workload?: Workload): RunAgentInput {
  const question: Message = { id: `question-${runId}`, role: "user", content: "What is the answer?" };
  return {
    threadId,
    runId,
    messages: workload === undefined ? [] : [...historyOf(workload.history), question],
    tools: [],
    context: [],
    forwardedProps: {},
    state: (workload && stateOf(workload.kind)) ?? {},
  };
}
