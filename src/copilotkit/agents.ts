import { useMemo } from "react";
import type { ClientAgent, LocalAgent, RuntimeConnection } from "../client/index.js";
import { useRuntime } from "../react/index.js";
import { liveAgent } from "./live-agent.js";

/** What CopilotKit's provider is given, see {@link useCopilotKitAgents}. */
export type CopilotKitAgents<A> = Readonly<Record<string, A>>;

/** By connection: components that render twice (StrictMode) are given the same agents. */
const known = new WeakMap<RuntimeConnection, Map<string, Record<string, LocalAgent>>>();

function agentsOf(runtime: RuntimeConnection, names: string): Record<string, LocalAgent> {
  let ofRuntime = known.get(runtime);
  if (ofRuntime === undefined) known.set(runtime, (ofRuntime = new Map()));
  let agents = ofRuntime.get(names);
  if (agents === undefined) {
    const agentIds = JSON.parse(names) as string[]; // written below
    const made = (agentId: string): LocalAgent => liveAgent(runtime.agent(agentId, { historyByRun: true }));
    agents = Object.fromEntries(agentIds.map((agentId) => [agentId, made(agentId)]));
    ofRuntime.set(names, agents);
  }
  return agents;
}

const NONE = {};

/**
 * The worker's agents for CopilotKit's provider: `<CopilotKitProvider selfManagedAgents={useCopilotKitAgents(["poet"])}>`.
 * A chat that shows one of them follows its thread: what any tab runs, streams there.
 *
 * The agents are those of the page: the same list is the same object, whoever asks. On a server the record is empty.
 *
 * @param agentIds names of agents in the host
 */
export function useCopilotKitAgents<A extends ClientAgent<A> = LocalAgent>(
  agentIds: readonly string[],
): CopilotKitAgents<A> {
  const runtime = useRuntime();
  const names = JSON.stringify(agentIds);
  return useMemo(
    // The class differs from `A` only by name, see `ClientAgent`.
    () => (runtime === undefined ? NONE : agentsOf(runtime, names)) as unknown as CopilotKitAgents<A>,
    [runtime, names],
  );
}
