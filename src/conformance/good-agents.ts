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

/** The id of the message that the agents here answer with. */
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

/** An agent in the middle of its answer: it goes on when it is told to, and ends when it is stopped. */
export interface HeldAgent {
  readonly agent: AbstractAgent;
  /** Opens when the agent was called. */
  readonly called: Gate;
  /** Opens when the agent was asked to stop. */
  readonly aborted: Gate;
  /** Lets it say the second part and finish. */
  readonly goOn: Gate;
}

/** What {@link held} agents have said while they wait, and what they say after it. */
export const FIRST_PART = "first part, ";
export const SECOND_PART = "second part";

/** How a {@link held} agent waits and ends. */
export interface Held {
  /** Emitted after the first part, before the wait. */
  readonly during?: (stage: Stage) => void;
  /** The message that it answers with. Default: one of its own. */
  readonly messageId?: string;
  /** How it ends when it goes on. Default `finish`, after the second part; the others leave everything as it is. */
  readonly ends?: "finish" | "complete" | "throw";
}

/** An agent that says the first part of its answer, then waits to be let go on. */
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
