import { serveRuntime } from "ag-ui-local-runtime/worker";
import {
  BareAgent,
  generatorAgent,
  hangingAgent,
  pacedAgent,
  recoveringAgent,
  steadyAgent,
  SyncAgent,
  tellingAgent,
  yieldingAgent,
} from "./agents.js";
import { installProbe } from "./probe.js";
import { questionsChannel, say, stamp, type HostConfig, type Question } from "./stamps.js";

const config = JSON.parse((globalThis as unknown as { name: string }).name) as HostConfig;
const { dbName, sync } = config;
const probe = config.probe ? installProbe() : undefined;

serveRuntime({
  dbName,
  agents: {
    sync: new SyncAgent(),
    bare: new BareAgent(),
    generator: generatorAgent,
    yielding: yieldingAgent,
    hanging: hangingAgent,
    paced: pacedAgent,
    recovering: recoveringAgent,
    steady: steadyAgent,
    telling: tellingAgent,
  },
  // Another agent's runs leave no trace of it.
  agentPolicies: { recovering: { recovery: { maxAttempts: 2, backoffMs: 0 } } },
  ...(sync !== undefined && { sync }),
});

// Tabs hear one another's answers as well: each tells what it answers.
const questions = new BroadcastChannel(questionsChannel(config));
questions.onmessage = ({ data }: MessageEvent<Question>) => {
  if (data === "clock") say(questions, { clock: stamp() });
  else if (data === "probe") say(questions, { probe: probe?.take() });
  else if (data === "commits") say(questions, { commits: probe?.commits() });
};
