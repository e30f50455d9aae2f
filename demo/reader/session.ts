import { type Event, EventType, type JsonPatchOperation } from "@ag-ui/core";
import { pieces, type Slices, type Work } from "./slices.js";

/** A generator of a run's events that returns what it found. */
export type Events<T = void> = AsyncGenerator<Event, T, void>;

const event = (one: Event): Event => one;

/** Steps of progress that are worth an event. */
const PROGRESS_STEP = 0.02;
/** A timer that fires late is made up for with longer deltas, up to this many pieces. */
const MAX_CATCH_UP = 40;

/** The events of one run: its answer, its reasoning, its tool calls, each with an id of the run. */
export class Session {
  readonly #runId: string;
  readonly #slices: Slices;
  readonly #pace: number;
  #answer: string | undefined;
  #answers = 0;
  #reasoning: string | undefined;
  #reasonings = 0;
  #calls = 0;
  #step: string | undefined;

  constructor(runId: string, slices: Slices, pace: number) {
    this.#runId = runId;
    this.#slices = slices;
    this.#pace = pace;
  }

  /** Streams Markdown to the answer; what is said after a tool call is an answer of its own, which stands below it. */
  async *say(markdown: string): Events {
    if (this.#answer === undefined) {
      this.#answer = `${this.#runId}-answer${++this.#answers === 1 ? "" : `-${this.#answers}`}`;
      yield event({ type: EventType.TEXT_MESSAGE_START, messageId: this.#answer, role: "assistant" });
    }
    const messageId = this.#answer;
    for await (const delta of this.#paced(markdown))
      yield event({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta });
  }

  /** Streams how the agent chose. */
  async *think(text: string): Events {
    if (this.#reasoning === undefined) {
      this.#reasoning = `${this.#runId}-reasoning-${++this.#reasonings}`;
      yield event({ type: EventType.REASONING_START, messageId: this.#reasoning });
      yield event({ type: EventType.REASONING_MESSAGE_START, messageId: this.#reasoning, role: "reasoning" });
    }
    const messageId = this.#reasoning;
    for await (const delta of this.#paced(text))
      yield event({ type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta });
  }

  /** What is said after it is a message of its own. */
  *endAnswer(): Generator<Event> {
    if (this.#answer === undefined) return;
    yield event({ type: EventType.TEXT_MESSAGE_END, messageId: this.#answer });
    this.#answer = undefined;
  }

  *endThinking(): Generator<Event> {
    if (this.#reasoning === undefined) return;
    const messageId = this.#reasoning;
    this.#reasoning = undefined;
    yield event({ type: EventType.REASONING_MESSAGE_END, messageId });
    yield event({ type: EventType.REASONING_END, messageId });
  }

  /** Calls a tool of the agent's own, as a step: arguments, the work, its result. */
  async *call<T>(
    stepName: string,
    toolCallName: string,
    args: object,
    work: () => Promise<{ value: T; result: object }>,
  ): Events<T> {
    const toolCallId = `${this.#runId}-call-${++this.#calls}`;
    const parentMessageId = `${this.#runId}-calls${this.#answers === 0 ? "" : `-${this.#answers + 1}`}`;
    yield* this.endAnswer();
    this.#step = stepName;
    yield event({ type: EventType.STEP_STARTED, stepName });
    yield event({ type: EventType.TOOL_CALL_START, toolCallId, toolCallName, parentMessageId });
    yield event({ type: EventType.TOOL_CALL_ARGS, toolCallId, delta: JSON.stringify(args) });
    yield event({ type: EventType.TOOL_CALL_END, toolCallId });
    const { value, result } = await work();
    yield event({
      type: EventType.TOOL_CALL_RESULT,
      messageId: `${toolCallId}-result`,
      toolCallId,
      content: JSON.stringify(result),
      role: "tool",
    });
    yield* this.endStep();
    return value;
  }

  patch(...delta: JsonPatchOperation[]): Event {
    return event({ type: EventType.STATE_DELTA, delta });
  }

  /** Does a phase's work as a step and tells how far it is. */
  async *step<T>(stepName: string, work: Work<T>, progress: (done: number) => JsonPatchOperation[]): Events<T> {
    this.#step = stepName;
    yield event({ type: EventType.STEP_STARTED, stepName });
    yield this.patch(...progress(0));
    let shown = 0;
    for (;;) {
      const next = await work.next();
      if (next.done) {
        yield this.patch(...progress(1));
        yield* this.endStep();
        return next.value;
      }
      if (next.value < shown + PROGRESS_STEP) continue;
      shown = Math.min(1, next.value);
      yield this.patch(...progress(Number(shown.toFixed(3))));
    }
  }

  /** Ends the step whose work has ended or thrown. */
  *endStep(): Generator<Event> {
    const stepName = this.#step;
    this.#step = undefined;
    if (stepName !== undefined) yield event({ type: EventType.STEP_FINISHED, stepName });
  }

  *close(): Generator<Event> {
    yield* this.endThinking();
    yield* this.endAnswer();
  }

  async *#paced(text: string): AsyncGenerator<string> {
    const slices = this.#slices;
    let open = "";
    let held = 0;
    let due = slices.now() + this.#pace;
    for (const piece of pieces(text)) {
      open += piece;
      // Behind time by whole pieces: this one goes out with the next.
      if (this.#pace > 0 && ++held < MAX_CATCH_UP && slices.now() - due > this.#pace) {
        due += this.#pace;
        continue;
      }
      yield open;
      open = "";
      held = 0;
      if (this.#pace > 0) {
        const rest = due - slices.now();
        if (rest > 0) await slices.wait(rest);
        else if (slices.due()) await slices.pause();
        due = Math.max(due + this.#pace, slices.now() - this.#pace * MAX_CATCH_UP);
      } else if (slices.due()) {
        await slices.pause();
      }
    }
    if (open !== "") yield open;
  }
}
