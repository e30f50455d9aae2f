import {
  AbstractAgent,
  EventType,
  verifyEvents,
  type BaseEvent,
  type Message,
  type RunAgentInput,
} from "@ag-ui/client";
import { lastValueFrom, Observable, toArray } from "rxjs";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import { defineAgent, type AgentFunction } from "../../../src/worker/define-agent.js";

/*
 * What tests of runners need in Node and in browsers.
 */

export const agentOf = (work: AgentFunction<BaseEvent>): AbstractAgent =>
  defineAgent<BaseEvent>(work, { agentId: "test" });

/** An agent whose pipeline gets what `emit` does, unguarded. */
export function rawAgent(run: (input: RunAgentInput) => Observable<BaseEvent>): AbstractAgent {
  class RawAgent extends AbstractAgent {
    override run(input: RunAgentInput): Observable<BaseEvent> {
      return run(input);
    }
  }
  return new RawAgent({ agentId: "raw" });
}

export const user = (id: string, content = `from ${id}`): Message => ({ id, role: "user", content });

export function inputOf(
  threadId: string,
  runId: string,
  messages = [user(`${runId}-u`)],
  state: unknown = {},
): RunAgentInput {
  return { threadId, runId, messages, state, tools: [], context: [], forwardedProps: {} };
}

/** Counts to `n` in one message; waits for `gate` before each step from `gateFrom` on. */
export const counter = (n: number, gate?: (step: number) => Promise<void> | undefined): AgentFunction =>
  async function* (input) {
    const messageId = `${input.runId}-a`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    for (let step = 0; step < n; step++) {
      await gate?.(step);
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${step} ` };
    }
    yield { type: EventType.TEXT_MESSAGE_END, messageId };
  };

export const collect = (events$: Observable<BaseEvent>): Promise<BaseEvent[]> => lastValueFrom(events$.pipe(toArray()));

/** All events of `connect`, as the verifier accepts them. */
export const replay = (runner: LocalAgentRunner, threadId: string): Promise<BaseEvent[]> =>
  collect(runner.connect({ threadId }).pipe(verifyEvents()));

/** What an AG-UI client that shows `held` rebuilds from events. @param changed called with what it shows after each */
export async function rebuild(
  events: readonly BaseEvent[],
  held: readonly Message[] = [],
  changed: (messages: readonly Message[]) => void = () => undefined,
): Promise<{ messages: Message[]; state: unknown }> {
  class Reader extends AbstractAgent {
    override run(): Observable<BaseEvent> {
      throw new Error("not used");
    }
    protected override connect(): Observable<BaseEvent> {
      return new Observable((subscriber) => {
        for (const event of structuredClone(events)) subscriber.next(event);
        subscriber.complete();
      });
    }
  }
  const reader = new Reader({ initialMessages: [...held] });
  await reader.connectAgent({}, { onMessagesChanged: ({ messages }) => changed(messages) });
  return { messages: reader.messages, state: reader.state };
}
