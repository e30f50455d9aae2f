import { Lazy } from "../../platform/lazy.js";
import type { Logger } from "../../platform/log.js";
import { RunnerError } from "../../run/errors.js";
import { loaded } from "../../run/loaded.js";
import type { LocalAgentRunner } from "../../runner/local-agent-runner.js";
import type { Network } from "../../platform/network.js";
import type { WaitingRow } from "../../storage/waiting.js";
import type { RunRequest } from "../../wire/shapes.js";
import type { AgentRegistry } from "../agents.js";
import type { Callers } from "../callers.js";
import type { AgentRuntimeOptions } from "../options.js";
import type { Admitted, Answer, Incoming } from "../request.js";
import type { RunAs } from "../runs.js";
import type { ServedRun } from "../served-run.js";
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
  const recovery = new Lazy(async () => {
    const { recovering } = await loaded(import("./recovering.js"));
    return recovering(core.agents, await runner.recoveries());
  });
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
        const request =
          row.kind === "recovery" ? await (await recovery.get()).requestFor(row, headers) : requestOf(row);
        // It does not go on.
        if (request === undefined) return;
        const attempt = row.kind === "recovery" ? row.attempt : undefined;
        await startUnread(core, request, await headers.get(), (admitted, made) =>
          core.startRun(admitted, made, { waiting: { attempt } }),
        );
      },
      recovery: {
        decide: async (row, headers) => (await recovery.get()).decide(row, headers ?? (await newest())),
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
