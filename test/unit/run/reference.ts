import { AbstractAgent, defaultApplyEvents, verifyEvents } from "@ag-ui/client";
import type { AgentStateMutation, BaseEvent, Interrupt, Message, RunAgentInput, State } from "@ag-ui/client";
import { from, EMPTY } from "rxjs";
import { vi } from "vitest";

/** `@ag-ui/client` has an rxjs of its own, whose types are others. */
type Events = Parameters<typeof defaultApplyEvents>[1];
const stream = (events: readonly BaseEvent[]): Events => from(events) as unknown as Events;

class Reader extends AbstractAgent {
  run(): Events {
    return EMPTY as unknown as Events;
  }
}

function all<T>(of: { subscribe(observer: object): unknown }): Promise<T[]> {
  const values: T[] = [];
  return new Promise((resolve, reject) => {
    of.subscribe({ next: (value: T) => values.push(value), error: reject, complete: () => resolve(values) });
  });
}

export interface Content {
  readonly messages: readonly Message[];
  readonly state: State;
  readonly interrupts: readonly Interrupt[];
}

/** What `@ag-ui/client` itself makes of the events, from what a reader held before. */
export async function referenceFold(base: Content, events: readonly BaseEvent[]): Promise<Content> {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  try {
    const agent = new Reader({
      threadId: "t",
      initialMessages: structuredClone(base.messages) as Message[],
      initialState: structuredClone(base.state),
    });
    agent.pendingInterrupts = structuredClone(base.interrupts) as Interrupt[];
    const input: RunAgentInput = {
      threadId: "t",
      runId: "run",
      state: structuredClone(base.state),
      messages: [],
      tools: [],
      context: [],
      forwardedProps: {},
    };
    // Copies: the reference writes to the messages of events.
    const mutations = await all<AgentStateMutation>(
      defaultApplyEvents(input, stream(structuredClone(events) as BaseEvent[]), agent, []),
    );
    let { messages, state } = agent;
    for (const mutation of mutations) {
      messages = mutation.messages ?? messages;
      if (mutation.state !== undefined) state = mutation.state;
    }
    return { messages, state, interrupts: agent.pendingInterrupts };
  } finally {
    warn.mockRestore();
  }
}

/** Throws the verifier's error where the sequence is not valid. */
export async function mustBeValid(events: readonly BaseEvent[]): Promise<void> {
  await all(verifyEvents()(stream(events)));
}
