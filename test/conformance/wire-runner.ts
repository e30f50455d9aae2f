import { AbstractAgent, type BaseEvent } from "@ag-ui/client";
import type { AgentRunner, AgentRunnerRunRequest } from "ag-ui-local-runtime";
import { connectRuntime, RemoteRunner, type RuntimeConnection } from "ag-ui-local-runtime/client";
import type { DescribeAgentRunnerOptions } from "ag-ui-local-runtime/conformance";
import { serveRuntime, type RuntimeHost } from "ag-ui-local-runtime/worker";
import { EMPTY, type Observable } from "rxjs";

/** An agent that is given to the host by name is whoever waits first in this line. */
class Line extends AbstractAgent {
  readonly waiting: AbstractAgent[] = [];

  override clone(): AbstractAgent {
    return this.waiting.shift() ?? new Line();
  }

  override run(): Observable<BaseEvent> {
    return EMPTY;
  }
}

/** What a tab has of a host of its own. */
interface Tab {
  readonly dbName: string;
  readonly host: RuntimeHost;
  readonly runtime: RuntimeConnection;
  readonly line: Line;
}

const tabs = new WeakMap<AgentRunner, Tab>();

function open(dbName: string): RemoteRunner {
  const line = new Line();
  const host = serveRuntime({ agents: { line }, dbName, stopGraceMs: 50 });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  const runner = runtime.runner();
  tabs.set(runner, { dbName, host, runtime, line });
  return runner;
}

function tabOf(runner: AgentRunner): Tab {
  const tab = tabs.get(runner);
  if (tab === undefined) throw new Error("not a runner of this suite");
  return tab;
}

async function close(runner: AgentRunner): Promise<void> {
  const { runtime, host } = tabOf(runner);
  await runtime.close();
  await host.close();
}

/** The host's runner as a tab has it: every call goes over ports. */
export const remoteRunnerOptions = (
  freshDb: () => string,
): Omit<DescribeAgentRunnerOptions, "framework"> & { readonly skip: object } => ({
  skip: { "reads.destroy": "a tab lets go of its host, and ends no run of it by that (L11)" },
  create: () => open(freshDb()),
  reopen: (runner) => open(tabOf(runner).dbName),
  destroy: close,
  // The host has the agents; the tab names one.
  run: (runner: AgentRunner, { agent, ...request }: AgentRunnerRunRequest) => {
    tabOf(runner).line.waiting.push(agent);
    return (runner as RemoteRunner).run({ ...request, agent: { agentId: "line" } });
  },
});
