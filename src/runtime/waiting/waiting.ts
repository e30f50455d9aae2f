import { Lazy } from "../../platform/lazy.js";
import type { Logger } from "../../platform/log.js";
import { RunnerError } from "../../run/errors.js";
import { isContinuing, repeatableToolsOf } from "../../run/hosted.js";
import type { LocalAgentRunner } from "../../runner/local-agent-runner.js";
import type { Network } from "../../platform/network.js";
import type { RecoveringAgent } from "../../runner/recoveries.js";
import type { RecoveryWaiting, WaitingRow } from "../../storage/waiting.js";
import type { RunRequest } from "../../wire/shapes.js";
import type { AgentRegistry } from "../agents.js";
import { callRequest, runCall } from "../call-request.js";
import type { Callers } from "../callers.js";
import type { AgentRuntimeOptions } from "../options.js";
import type { Admitted, Answer, Incoming, ServedRun } from "../request.js";
import type { RunAs } from "../runs.js";
import { startUnread } from "../start-unread.js";
import { requestIn } from "./stored-call.js";
import { WaitingRuns } from "./waiting-runs.js";

type Headers = Readonly<Record<string, string>>;

/** How long a run whose caller is not known waits for a tab's first call, in ms: it is given that one's headers. */
const FIRST_CALL_MS = 2_000;

/** What is needed of the runtime's core. */
interface Core {
  readonly agents: AgentRegistry;
  readonly callers: Callers;
  readonly logger: Required<Logger>;
  readonly isServer: boolean;
  readonly options: Pick<AgentRuntimeOptions, "agentPolicies">;
  serve<T>(incoming: Incoming, answer: (request: Admitted) => Promise<Answer<T>>): Promise<T>;
  startRun(request: Admitted, run: RunRequest, as?: RunAs): Promise<ServedRun>;
}

/** The waiting runs of a runner's log, started as the runtime starts what tabs ask for. */
export async function waitingRuns(core: Core, runner: LocalAgentRunner, network: Network): Promise<WaitingRuns> {
  const outbox = await runner.outbox.get();
  const { clock } = runner.waiting;
  const { agentPolicies: policies } = core.options;
  const newest = (): Promise<Headers> => core.callers.newest(clock, FIRST_CALL_MS);
  /** The run that goes on with a broken one, as a tab would ask for it; undefined if it does not go on: it waits no more. */
  const goingOn = async (row: RecoveryWaiting, headers: Lazy<Headers>): Promise<RunRequest | undefined> => {
    const recoveries = await runner.recoveries();
    const input = await recoveries.input(row, async () => agentOf(core.agents, row, await headers.get()));
    const { threadId, agentId } = row;
    return input && { threadId, agentId, input, partial: { stateSet: false } };
  };
  return new WaitingRuns(
    {
      runner,
      network,
      callers: core.callers,
      policies,
      logger: core.logger,
      haveServers: core.agents.haveServers,
      isServer: core.isServer,
      begin: (request, headers) =>
        startUnread(core, request, headers, (admitted, made) => core.startRun(admitted, made)),
      execute: async (row, given) => {
        const headers = new Lazy(() => given ?? newest());
        const request = row.kind === "recovery" ? await goingOn(row, headers) : requestOf(row);
        // It does not go on.
        if (request === undefined) return;
        const attempt = row.kind === "recovery" ? row.attempt : undefined;
        await startUnread(core, request, await headers.get(), (admitted, made) =>
          core.startRun(admitted, made, { waiting: { attempt } }),
        );
      },
      recovery: {
        decide: async (row, headers) => {
          const recoveries = await runner.recoveries();
          await recoveries.decide(row, await agentOf(core.agents, row, headers ?? (await newest())));
        },
        cancel: async (row) => (await runner.recoveries()).cancel(row),
        refused: async (row) => (await runner.recoveries()).refused(row),
      },
    },
    outbox,
  );
}

/** @throws RunnerError `corrupt-record` */
function requestOf(row: WaitingRow): RunRequest {
  const request = row.kind === "run" ? requestIn(row) : undefined;
  if (request === undefined) throw new RunnerError("corrupt-record", { threadId: row.threadId, store: "waiting" });
  return request;
}

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
