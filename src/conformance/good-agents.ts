import { EventType, type AGUIEvent } from "@ag-ui/core";
import type { AbstractAgent, RunAgentInput } from "@ag-ui/client";
import { Gate } from "./patience.js";
import { scriptedAgent, type Stage } from "./scripted-agent.js";

type Ids = Pick<RunAgentInput, "threadId" | "runId">;

/** Events by their short names; each call makes new objects. */
export const say = {
  started: ({ threadId, runId }: Ids): AGUIEvent => ({ type: EventType.RUN_STARTED, threadId, runId }),
  finished: ({ threadId, runId }: Ids): AGUIEvent => ({ type: EventType.RUN_FINISHED, threadId, runId }),
  failed: (message: string): AGUIEvent => ({ type: EventType.RUN_ERROR, message }),
  textStart: (messageId: string): AGUIEvent => ({ type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" }),
  text: (messageId: string, delta: string): AGUIEvent => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta }),
  textEnd: (messageId: string): AGUIEvent => ({ type: EventType.TEXT_MESSAGE_END, messageId }),
  state: (snapshot: unknown): AGUIEvent => ({ type: EventType.STATE_SNAPSHOT, snapshot }),
} as const;

/** The id of the message with which these agents answer. */
export const answerId = ({ runId }: Pick<RunAgentInput, "runId">): string => `${runId}-answer`;

/** Answers with one message and finishes, as an agent should. */
export function answering(text: string): AbstractAgent {
  return scriptedAgent(async ({ input, emit }) => {
    const id = answerId(input);
    emit(say.started(input), say.textStart(id));
    for (const word of text.split(/(?<= )/)) {
      await Promise.resolve();
      emit(say.text(id, word));
    }
    emit(say.textEnd(id), say.finished(input));
  });
}

/** An agent that pauses in the middle of its answer until it is released or stopped. */
export interface HeldAgent {
  readonly agent: AbstractAgent;
  /** Opens when the agent is called. */
  readonly called: Gate;
  /** Opens when the agent is asked to stop. */
  readonly aborted: Gate;
  /** Releases it: it emits the second part and finishes. */
  readonly goOn: Gate;
}

/** The two parts of the answer of a {@link held} agent. */
export const FIRST_PART = "first part, ";
export const SECOND_PART = "second part";

/** How a {@link held} agent waits and ends. */
export interface Held {
  /** Emitted after the first part, before the wait. */
  readonly during?: (stage: Stage) => void;
  /** Id of the answer. Default: its own. */
  readonly messageId?: string;
  /** How it ends when released. Default `finish`, after the second part; the others leave everything open. */
  readonly ends?: "finish" | "complete" | "throw";
}

/** An agent that emits the first part of its answer and pauses until it is released. */
export function held({ during, messageId, ends = "finish" }: Held = {}): HeldAgent {
  const [called, aborted, goOn] = [new Gate(), new Gate(), new Gate()];
  const agent = scriptedAgent(async (stage) => {
    const { input, emit, signal } = stage;
    const id = messageId ?? answerId(input);
    called.open();
    signal.addEventListener("abort", () => aborted.open(), { once: true });
    emit(say.started(input), say.textStart(id), say.text(id, FIRST_PART));
    during?.(stage);
    await Promise.race([goOn.opened, aborted.opened]);
    if (signal.aborted || ends === "complete") return;
    if (ends === "throw") throw new Error("boom");
    emit(say.text(id, SECOND_PART), say.textEnd(id), say.finished(input));
  });
  return { agent, called, aborted, goOn };
}
