import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { clientAlone } from "../runs/client-alone.js";
import { copilotKit } from "../runs/copilotkit.js";
import { runsApi, type RunsApi } from "../runs/api.js";
import { ours } from "../runs/ours.js";
import { serveCalls } from "./serve.js";

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

serveCalls(api);
