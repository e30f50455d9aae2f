import { AbstractAgent } from "@ag-ui/client";
import type { LocalAgentRunner } from "ag-ui-local-runtime";
import { Observable } from "rxjs";
import { replayAgents, type Contestant } from "./contestant.js";

const agentOf = replayAgents({ AbstractAgent, Observable });

/** A runner of this project. */
export async function ours(runner: LocalAgentRunner): Promise<Contestant> {
  await runner.opened;
  return {
    prepare: (events, input) => {
      const agent = agentOf(events);
      return () => runner.run({ threadId: input.threadId, agent, input });
    },
    close: () => runner.destroy(),
  };
}
