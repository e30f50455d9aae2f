import type { AbstractAgent, BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { Observable } from "rxjs";

export interface Observer {
  next(event: BaseEvent): void;
  error(error: unknown): void;
  complete(): void;
}

/** A runner with the agent that it is measured with. */
export interface Contestant {
  /**
   * Makes the run's agent, as a host does before it asks its runner.
   *
   * @returns what is measured: from this call to `complete`
   */
  prepare(events: readonly BaseEvent[], input: RunAgentInput): () => { subscribe(observer: Observer): unknown };
  /** Lets go of everything that it keeps. */
  close(): Promise<void>;
}

/** What an agent is made of. A runner may bring another version of it than ours. */
export interface AgentKit {
  readonly AbstractAgent: typeof AbstractAgent;
  readonly Observable: typeof Observable;
}

/** Makes clones of an agent that emits prepared events in one task. */
export function replayAgents(kit: AgentKit): (events: readonly BaseEvent[]) => AbstractAgent {
  class ReplayAgent extends kit.AbstractAgent {
    events: readonly BaseEvent[] = [];

    override run(): Observable<BaseEvent> {
      return new kit.Observable((subscriber) => {
        for (const event of this.events) subscriber.next(event);
        subscriber.complete();
      });
    }
  }
  const original = new ReplayAgent({ agentId: "replay" });
  return (events) => {
    // A clone has the prototype and the fields of AbstractAgent, no others.
    const agent: ReplayAgent = original.clone();
    agent.events = events;
    return agent;
  };
}

/** As a host gives the agent what the request says; the runners of this project do it themselves. */
export function withRequest(agent: AbstractAgent, input: RunAgentInput): AbstractAgent {
  agent.setMessages(input.messages);
  agent.setState(input.state);
  agent.threadId = input.threadId;
  return agent;
}
