import type { AbstractAgent } from "@ag-ui/client";
import { systemClock } from "../../platform/clock.js";
import { flawOf } from "../../run/json.js";
import type { AgentDescription, AgentRegistry, KnownAgent } from "../agents.js";

/** Describes all agents without loading any: one that is not loaded yet is described by its id only. */
export const describeAgents = async (
  agents: AgentRegistry,
  request: () => Request,
): Promise<Readonly<Record<string, AgentDescription>>> =>
  Object.fromEntries(await Promise.all((await agents.all(request)).map(described)));

/** An agent may ask its server what it can do. */
const CAPABILITIES_MS = 3_000;

/**
 * What an agent says that it can do, as JSON has it; undefined where it fails or takes too long: the others are told
 * of.
 */
async function capabilitiesOf(agent: AbstractAgent | undefined): Promise<unknown> {
  const said = new AbortController();
  try {
    const told: unknown = await Promise.race([
      agent?.getCapabilities?.(),
      systemClock.after(CAPABILITIES_MS, said.signal),
    ]);
    return flawOf(told) === undefined ? JSON.parse(JSON.stringify(told)) : undefined;
  } catch {
    return undefined;
  } finally {
    said.abort();
  }
}

async function described({ agentId, agent, placement }: KnownAgent): Promise<[string, AgentDescription]> {
  const capabilities = await capabilitiesOf(agent);
  const description: AgentDescription = {
    name: agentId,
    description: agent?.description ?? "",
    className: agent?.constructor.name ?? "AbstractAgent",
    ...(capabilities !== undefined && capabilities !== null && { capabilities }),
    ...(placement !== "here" && { placement }),
  };
  return [agentId, description];
}
