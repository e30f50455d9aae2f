import { AbstractAgent, EventType, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { Observable } from "rxjs";
import { defineAgent } from "../../../src/worker/define-agent.js";

/*
 * Agents that say the next word when they are told to. One run at a time.
 */

type Next = (word: string | undefined) => void;
let next: Next | undefined;

/** An agent waits to be told. */
export const isWaiting = (): boolean => next !== undefined;
function told(word: string | undefined): void {
  const say = next!;
  next = undefined;
  say(word);
}
/** The agent of the live run says a word. */
export const tell = (word: string): void => told(word);
/** It ends its run. */
export const tellEnd = (): void => told(undefined);

const start = ({ runId }: RunAgentInput): BaseEvent =>
  ({ type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" }) as BaseEvent;
const say = ({ runId }: RunAgentInput, delta: string): BaseEvent =>
  ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-a`, delta }) as BaseEvent;
const end = ({ runId }: RunAgentInput): BaseEvent =>
  ({ type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-a` }) as BaseEvent;

/** Emits without a promise of its own. */
class ToldAgent extends AbstractAgent {
  override run(input: RunAgentInput): Observable<BaseEvent> {
    return new Observable((subscriber) => {
      const { threadId, runId } = input;
      const hear: Next = (word) => {
        if (word !== undefined) {
          next = hear;
          return subscriber.next(say(input, word));
        }
        subscriber.next(end(input));
        subscriber.next({ type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent);
        subscriber.complete();
      };
      subscriber.next({ type: EventType.RUN_STARTED, threadId, runId } as BaseEvent);
      subscriber.next(start(input));
      next = hear;
    });
  }
}

/** Awaits each word, as one that reads a stream does. */
const toldFunction = defineAgent<BaseEvent>(async function* (input) {
  yield start(input);
  for (;;) {
    const word = await new Promise<string | undefined>((resolve) => {
      next = resolve;
    });
    if (word === undefined) break;
    yield say(input, word);
  }
  yield end(input);
});

export type Told = "class" | "function";
export const TOLD: Readonly<Record<Told, AbstractAgent>> = {
  class: new ToldAgent({ agentId: "class" }),
  function: toldFunction,
};
