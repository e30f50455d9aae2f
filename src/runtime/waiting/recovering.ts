import type { Lazy } from "../../platform/lazy.js";
import { RunnerError } from "../../run/errors.js";
import { isContinuing, repeatableToolsOf } from "../../run/hosted.js";
import type { Recoveries, RecoveringAgent } from "../../runner/recoveries.js";
import type { RecoveryWaiting } from "../../storage/waiting.js";
import type { RunRequest } from "../../wire/shapes.js";
import type { AgentRegistry } from "../agents.js";
import { callRequest } from "../call-request.js";
import { runCall } from "../run-call.js";

type Headers = Readonly<Record<string, string>>;

/** What the starter of waiting runs asks about broken ones. Loaded when one waits that goes on with one. */
export interface Recovering {
  /** See `Recoveries.decide`. Errors: what loading the agent threw; the next look asks again. */
  decide(row: RecoveryWaiting, headers: Headers): Promise<void>;
  /** The run that goes on, as a tab would ask for it; undefined if it does not go on: it waits no more. Errors: as `decide` */
  requestFor(row: RecoveryWaiting, headers: Lazy<Headers>): Promise<RunRequest | undefined>;
}

export const recovering = (agents: AgentRegistry, recoveries: Recoveries): Recovering => ({
  decide: async (row, headers) => {
    await recoveries.decide(row, await agentOf(agents, row, headers));
  },
  requestFor: async (row, headers) => {
    const input = await recoveries.input(row, async () => agentOf(agents, row, await headers.get()));
    if (input === undefined) return undefined;
    const { threadId, agentId } = row;
    return { threadId, agentId, input, partial: { stateSet: false } };
  },
});

/** What of the agent recovery depends on; undefined where this host has no such agent. */
async function agentOf(
  agents: AgentRegistry,
  { threadId, runId, agentId }: RecoveryWaiting,
  headers: Headers,
): Promise<RecoveringAgent | undefined> {
  const input = { threadId, runId, messages: [], tools: [], context: [], forwardedProps: {}, state: {} };
  const { request } = callRequest({ ...runCall({ threadId, agentId, input }), headers });
  try {
    const agent = await agents.clone(agentId, request);
    return { continues: isContinuing(agent), repeatableTools: repeatableToolsOf(agent) };
  } catch (error) {
    if (RunnerError.is(error, "unknown-agent") || RunnerError.is(error, "invalid-agent")) return undefined;
    throw error;
  }
}
