import { EventType } from "@ag-ui/core";
import {
  AbstractAgent,
  verifyEvents,
  type AgentStateMutation,
  type BaseEvent,
  type Interrupt,
  type Message,
  type RunAgentInput,
} from "@ag-ui/client";
import { from, Observable, throwError } from "rxjs";
import { messageOf } from "../run/errors.js";
import { expectSame, expectThat, fail, shown } from "./expect.js";

/** What an AG-UI client has rebuilt. */
export interface View {
  readonly messages: readonly Message[];
  readonly state: unknown;
  readonly interrupts: readonly Interrupt[];
}

export const NOTHING: View = { messages: [], state: {}, interrupts: [] };

function copyOf<T>(value: T): T {
  try {
    return structuredClone(value);
  } catch {
    return value;
  }
}

/** `@ag-ui/client` itself, fed with events instead of a connection. */
class Reader extends AbstractAgent {
  constructor(
    private readonly handed: readonly BaseEvent[],
    { messages, state, interrupts }: View,
  ) {
    super({ initialMessages: copyOf([...messages]), initialState: copyOf(state) });
    this.pendingInterrupts = copyOf([...interrupts]);
  }

  override run(): Observable<BaseEvent> {
    return throwError(() => new Error("a reader runs nothing"));
  }

  // A copy: the client mutates the messages of events.
  protected override connect(): Observable<BaseEvent> {
    return from(copyOf([...this.handed]));
  }

  /** The default refuses to go on while an interrupt is open. */
  protected override async onInitialize(): Promise<void> {}

  /** The default prints the error before it throws it. */
  protected override onError(_input: RunAgentInput, error: Error): Observable<AgentStateMutation> {
    return throwError(() => error);
  }
}

/**
 * What an AG-UI client rebuilds from events and what it had before.
 *
 * @param name of the events in messages: "the replay"
 */
export async function rebuild(name: string, events: readonly BaseEvent[], before: View = NOTHING): Promise<View> {
  const reader = new Reader(events, before);
  try {
    await reader.connectAgent();
  } catch (error) {
    fail(`an AG-UI client must be able to read ${name}`, `it says: ${messageOf(error)}`);
  }
  const { messages, state, pendingInterrupts } = reader;
  return { messages, state, interrupts: pendingInterrupts };
}

/** Fails with the verifier's reason and the event that it rejected. */
export function mustBeValid(name: string, events: readonly BaseEvent[]): void {
  let passed = 0;
  let reason: unknown;
  from([...events])
    .pipe(verifyEvents())
    .subscribe({ next: () => passed++, error: (error: unknown) => (reason = error) });
  if (reason === undefined) return;
  const types = events.map((event) => event.type);
  fail(`verifyEvents must accept ${name}`, `at event ${passed} of ${shown(types)} it says: ${messageOf(reason)}`);
}

export const isTerminal = ({ type }: BaseEvent): boolean =>
  type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR;

/** One run from RUN_STARTED to its only terminal event, with its own ids. */
export function mustBeOneRun(
  name: string,
  events: readonly BaseEvent[],
  { threadId, runId }: Pick<RunAgentInput, "threadId" | "runId">,
): void {
  const types = events.map((event) => event.type);
  const count = (type: string): number => types.filter((other) => other === type).length;
  expectThat(types[0] === EventType.RUN_STARTED, `${name} must begin with RUN_STARTED`, `it is ${shown(types)}`);
  expectThat(count(EventType.RUN_STARTED) === 1, `${name} must have one RUN_STARTED`, `it is ${shown(types)}`);
  const ends = events.filter(isTerminal);
  expectThat(ends.length === 1, `${name} must have exactly one terminal event`, `it is ${shown(types)}`);
  expectThat(ends[0] === events.at(-1), `the terminal event of ${name} must be its last`, `it is ${shown(types)}`);
  for (const event of [events[0]!, ends[0]!]) {
    if (event.type === EventType.RUN_ERROR) continue;
    const named = { threadId: event["threadId"], runId: event["runId"] };
    expectSame(named, { threadId, runId }, `${event.type} of ${name} must name the thread and run that were asked for`);
  }
}

/** The START and END types of everything that a run opens, and its id field. */
const PAIRS: readonly (readonly [start: string, ends: readonly string[], id: string])[] = [
  [EventType.TEXT_MESSAGE_START, [EventType.TEXT_MESSAGE_END], "messageId"],
  [EventType.TOOL_CALL_START, [EventType.TOOL_CALL_END], "toolCallId"],
  [EventType.REASONING_START, [EventType.REASONING_END], "messageId"],
  [EventType.REASONING_MESSAGE_START, [EventType.REASONING_MESSAGE_END], "messageId"],
  [EventType.STEP_STARTED, [EventType.STEP_FINISHED], "stepName"],
  [EventType.SUBAGENT_STARTED, [EventType.SUBAGENT_FINISHED, EventType.SUBAGENT_ERROR], "subagentRunId"],
];

/** The verifier lets RUN_ERROR leave things open; a reader would show them as unfinished for ever. */
export function mustBeClosed(name: string, events: readonly BaseEvent[]): void {
  for (const [start, ends, id] of PAIRS) {
    const open = new Set<unknown>();
    for (const event of events) {
      if (event.type === start) open.add(event[id]);
      else if (ends.includes(event.type)) open.delete(event[id]);
    }
    const rule = `${name} must close what it opened before its terminal event`;
    expectThat(open.size === 0, rule, `open by ${start}: ${shown([...open])}`);
  }
}

/** Two readers must have rebuilt the same. */
export function mustAgree(name: string, actual: View, expected: View): void {
  const rule = `${name} must rebuild what the runs themselves produced`;
  expectSame(actual.messages, expected.messages, `${rule}: its messages`);
  expectSame(actual.state, expected.state, `${rule}: its state`);
  expectSame(actual.interrupts, expected.interrupts, `${rule}: its open interrupts`);
}

/** The text of a message; undefined if no message has this id. */
export function textOf(view: View, messageId: string): string | undefined {
  const content = view.messages.find((message) => message.id === messageId)?.content;
  return typeof content === "string" ? content : undefined;
}

/** Whether an event has this text in its delta. */
export const hasText = (text: string) => (event: BaseEvent) =>
  typeof event["delta"] === "string" && event["delta"].includes(text);

/** Joins adjacent deltas of a message: how text is split is free. */
export function joined(events: readonly BaseEvent[]): BaseEvent[] {
  const all: BaseEvent[] = [];
  for (const event of events) {
    const last = all.at(-1);
    const goesOn =
      last !== undefined &&
      typeof event["delta"] === "string" &&
      last.type === event.type &&
      last["messageId"] === event["messageId"] &&
      last["toolCallId"] === event["toolCallId"];
    if (goesOn) all[all.length - 1] = { ...last, delta: `${String(last["delta"])}${event["delta"] as string}` };
    else all.push(event);
  }
  return all;
}
