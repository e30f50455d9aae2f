import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { clientAlone } from "../runs/client-alone.js";
import { copilotKit } from "../runs/copilotkit.js";
import { runsApi, type RunsApi } from "../runs/api.js";
import { ours } from "../runs/ours.js";

export type NodeContestant = "memory" | "copilotkit" | "client";
export type NodeRuns = RunsApi<NodeContestant>;

/** What the process is started with. */
const peer = process.argv[2];

const api: NodeRuns = runsApi<NodeContestant>(
  {
    memory: () => ours(new InMemoryAgentRunner({ store: "isolated" })),
    copilotkit:
      peer === undefined
        ? () => Promise.reject(new Error("CopilotKit's runner is not installed"))
        : await copilotKit(peer),
    client: clientAlone,
  },
  () => new InMemoryAgentRunner(),
);

export interface Call {
  readonly method: keyof NodeRuns;
  readonly args: readonly unknown[];
}
export type Answer = { readonly value: unknown } | { readonly error: string };

process.on("message", ({ method, args }: Call) => {
  // The caller's proxy is typed by the same interface.
  const called = api[method] as (...all: readonly unknown[]) => Promise<unknown>;
  called(...args).then(
    (value) => process.send!({ value } satisfies Answer),
    (error: unknown) => process.send!({ error: error instanceof Error ? String(error.stack) : String(error) }),
  );
});
process.send!("ready");
