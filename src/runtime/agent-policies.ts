import { checkNames, FLAG, type Names } from "../run/options.js";

/** What the runtime does about an agent's runs. */
export interface AgentPolicy {
  /**
   * Its runs need the network: while there is none, they are refused as `offline`, or wait where the caller asked for it
   * (`whenOffline: "wait"`). Default false.
   */
  readonly needsNetwork?: boolean;
}

/** Policies by agentId. */
export type AgentPolicies = Readonly<Record<string, AgentPolicy>>;

const NAMES: Names<AgentPolicy> = { needsNetwork: FLAG };

/** @throws RunnerError `invalid-input` */
export function checkAgentPolicies(policies: AgentPolicies | undefined): void {
  for (const [agentId, policy] of Object.entries(policies ?? {})) {
    checkNames(policy, NAMES, { of: "AgentRuntime", within: `agentPolicies.${agentId}`, isRequired: true });
  }
}

/** An agent's policy. Only own keys of the record count. */
export const policyOf = (policies: AgentPolicies | undefined, agentId: string): AgentPolicy =>
  policies !== undefined && Object.hasOwn(policies, agentId) ? policies[agentId]! : {};
