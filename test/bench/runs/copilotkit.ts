import type { AbstractAgent, RunAgentInput } from "@ag-ui/client";
import { replayAgents, withRequest, type AgentKit, type Contestant, type Observer } from "./contestant.js";

/** What is used of the package; it is not there when this is compiled. */
interface CopilotKit extends AgentKit {
  readonly InMemoryAgentRunner: new () => {
    run(request: { threadId: string; agent: AbstractAgent; input: RunAgentInput }): {
      subscribe(observer: Observer): unknown;
    };
    clearThreads(): void;
  };
}

/**
 * CopilotKit's runner with an agent of its own client.
 *
 * @param url of `test/copilotkit/peer.mjs`
 */
export async function copilotKit(url: string): Promise<() => Promise<Contestant>> {
  const kit: CopilotKit = await import(/* @vite-ignore */ url);
  const agentOf = replayAgents(kit);
  return async () => {
    const runner = new kit.InMemoryAgentRunner();
    return {
      prepare: (events, input) => {
        const agent = withRequest(agentOf(events), input);
        return () => runner.run({ threadId: input.threadId, agent, input });
      },
      close: async () => runner.clearThreads(),
    };
  };
}
