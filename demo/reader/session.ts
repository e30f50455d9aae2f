import { type Event, EventType, type JsonPatchOperation } from "@ag-ui/core";
import { paced, type Slices, type Work } from "../documents/slices.js";

/** A generator of a run's events that returns what it found. */
export type Events<T = void> = AsyncGenerator<Event, T, void>;

const event = (one: Event): Event => one;

/** Steps of progress that are worth an event. */
const PROGRESS_STEP = 0.02;

/** The events of one run: its answer, its reasoning, its tool calls, each with an id of the run. */
export class Session {
  #answer: string | undefined;
  #answers = 0;
  #calls = 0;

  constructor(
    private readonly runId: string,
    private readonly slices: Slices,
    private readonly paceMs: number,
  ) {}

  /** Streams Markdown to the answer; what is said after a tool call is an answer of its own, which stands below it. */
  async *say(markdown: string): Events {
    if (this.#answer === undefined) {
      this.#answer = `${this.runId}-answer${++this.#answers === 1 ? "" : `-${this.#answers}`}`;
      yield event({ type: EventType.TEXT_MESSAGE_START, messageId: this.#answer, role: "assistant" });
    }
    const messageId = this.#answer;
    for await (const delta of paced(markdown, this.paceMs, this.slices))
      yield event({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta });
  }

  /** What is said after it is a message of its own. */
  *endAnswer(): Generator<Event> {
    if (this.#answer !== undefined) yield event({ type: EventType.TEXT_MESSAGE_END, messageId: this.#answer });
    this.#answer = undefined;
  }

  /** Streams how the agent chose, as a message of its own. */
  async *think(text: string): Events {
    yield* this.endAnswer();
    const messageId = `${this.runId}-reasoning-${++this.#answers}`;
    yield event({ type: EventType.REASONING_START, messageId });
    yield event({ type: EventType.REASONING_MESSAGE_START, messageId, role: "reasoning" });
    for await (const delta of paced(text, this.paceMs, this.slices))
      yield event({ type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta });
    yield event({ type: EventType.REASONING_MESSAGE_END, messageId });
    yield event({ type: EventType.REASONING_END, messageId });
  }

  /** Calls a tool of the agent's own: arguments, the work, its result. */
  async *call<T>(toolCallName: string, args: object, work: () => Events<{ value: T; result: object }>): Events<T> {
    const toolCallId = `${this.runId}-call-${++this.#calls}`;
    const parentMessageId = `${this.runId}-calls-${++this.#answers}`;
    yield* this.endAnswer();
    yield event({ type: EventType.TOOL_CALL_START, toolCallId, toolCallName, parentMessageId });
    yield event({ type: EventType.TOOL_CALL_ARGS, toolCallId, delta: JSON.stringify(args) });
    yield event({ type: EventType.TOOL_CALL_END, toolCallId });
    const { value, result } = yield* work();
    const content = JSON.stringify(result);
    const messageId = `${toolCallId}-result`;
    yield event({ type: EventType.TOOL_CALL_RESULT, messageId, toolCallId, content, role: "tool" });
    return value;
  }

  patch(...delta: JsonPatchOperation[]): Event {
    return event({ type: EventType.STATE_DELTA, delta });
  }

  /** Does a phase's work as a step and tells how far it is. */
  async *step<T>(stepName: string, work: Work<T>, progress: (done: number) => JsonPatchOperation[]): Events<T> {
    yield event({ type: EventType.STEP_STARTED, stepName });
    yield this.patch(...progress(0));
    try {
      let shown = 0;
      for (;;) {
        const next = await work.next();
        if (next.done) {
          yield this.patch(...progress(1));
          return next.value;
        }
        if (next.value < shown + PROGRESS_STEP) continue;
        shown = Math.min(1, next.value);
        yield this.patch(...progress(Number(shown.toFixed(3))));
      }
    } finally {
      if (!this.slices.signal.aborted) yield event({ type: EventType.STEP_FINISHED, stepName });
    }
  }
}
