import { invalidInput } from "../run/errors.js";
import { checkNames, FLAG, NUMBER, OBJECT, TEXTS, TIMEOUT, type Names } from "../run/options.js";
import type { Placement } from "../runner/request.js";
import {
  policyOf as recoveryPolicyOf,
  type RecoverableEnd,
  type RecoveryChoice,
  type RecoveryPolicy,
} from "../run/recovery.js";

/** What the runtime does about an agent's runs. */
export interface AgentPolicy {
  /**
   * Its runs need the network: while there is none, they are refused as `offline`, or wait where the caller asked for it
   * (`whenOffline: "wait"`). Default false.
   */
  readonly needsNetwork?: boolean;
  /**
   * Names of headers without which its runs can do nothing: a person's key, for example. None are stored, so a run that starts
   * later than its call (it waited, or goes on after its host died) then waits until a connected tab has called with all of
   * them, none empty. A run that starts with its call has those of its call. A host on a server waits for none. Default: none.
   */
  readonly needsHeaders?: readonly string[];
  /**
   * Where its runs are executed, with `sync`: `here`, in this host; `server`, on a server of the space, and nowhere else (an
   * agent of that name need not be here); `any`, on a server while one that has the agent is online, else here. Default:
   * `here` for an agent of this host, `server` for those that only servers have.
   */
  readonly placement?: "here" | Placement;
  /**
   * Whether its runs go on by themselves after their host died, their stream was cut off, or they failed in a way that may
   * pass. Default `ask`: they end, and the reader is shown so.
   */
  readonly recovery?: RecoveryChoice;
}

/** Policies by agentId. */
export type AgentPolicies = Readonly<Record<string, AgentPolicy>>;

const ENDS: readonly unknown[] = ["broken", "incomplete", "retryable"] satisfies RecoverableEnd[];

const NAMES: Names<AgentPolicy> = {
  needsNetwork: FLAG,
  needsHeaders: TEXTS,
  placement: [(given) => given === "here" || given === "server" || given === "any", '"here", "server" or "any"'],
  recovery: [
    (given) => given === "ask" || given === "auto" || OBJECT[0](given),
    '"ask", "auto" or an object (RecoveryPolicy)',
  ],
};
const RECOVERY: Names<RecoveryPolicy> = {
  maxAttempts: TIMEOUT,
  noProgressMs: TIMEOUT,
  backoffMs: NUMBER,
  maxBackoffMs: NUMBER,
  repeatableTools: TEXTS,
  on: [
    (given) => Array.isArray(given) && given.every((end) => ENDS.includes(end)),
    "a list of broken, incomplete, retryable",
  ],
};

/** @throws RunnerError `invalid-input` */
export function checkAgentPolicies(policies: AgentPolicies | undefined, hasServers: boolean): void {
  for (const [agentId, policy] of Object.entries(policies ?? {})) {
    const within = `agentPolicies.${agentId}`;
    checkNames(policy, NAMES, { of: "AgentRuntime", within, isRequired: true });
    const { placement = "here" } = policy;
    if (placement !== "here" && !hasServers) {
      const field = `${within}.placement`;
      throw invalidInput(field, `${field} is "${placement}", which needs sync: without it there are no servers`);
    }
    if (typeof policy.recovery !== "object") continue;
    checkNames(policy.recovery, RECOVERY, { of: "AgentRuntime", within: `${within}.recovery` });
  }
}

/** An agent's policy. Only own keys of the record count. */
export const policyOf = (policies: AgentPolicies | undefined, agentId: string): AgentPolicy =>
  policies !== undefined && Object.hasOwn(policies, agentId) ? policies[agentId]! : {};

/** Where the runs of agents are executed, by agentId, as far as somebody has said so. */
export const placements = (policies: AgentPolicies | undefined): ReadonlyMap<string, "here" | Placement> =>
  new Map(
    Object.entries(policies ?? {}).flatMap(([agentId, { placement }]) =>
      placement === undefined ? [] : [[agentId, placement] as const],
    ),
  );

/** Which broken runs go on by themselves, by their agent; undefined: none do. */
export function recoveryBy(
  policies: AgentPolicies | undefined,
): ((agentId: string | undefined) => RecoveryPolicy | undefined) | undefined {
  const isAny = Object.values(policies ?? {}).some(({ recovery }) => recoveryPolicyOf(recovery) !== undefined);
  if (!isAny) return undefined;
  return (agentId) => (agentId === undefined ? undefined : recoveryPolicyOf(policyOf(policies, agentId).recovery));
}
