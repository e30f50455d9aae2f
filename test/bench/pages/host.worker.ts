import { serveRuntime } from "ag-ui-local-runtime/worker";
import { BareAgent, generatorAgent, hangingAgent, pacedAgent, SyncAgent, yieldingAgent } from "./agents.js";
import { installProbe } from "./probe.js";
import { say, stamp, type HostConfig } from "./stamps.js";

const { dbName, host, probe: probing } = JSON.parse((globalThis as unknown as { name: string }).name) as HostConfig;
const probe = probing ? installProbe() : undefined;

serveRuntime({
  dbName,
  agents: {
    sync: new SyncAgent(),
    bare: new BareAgent(),
    generator: generatorAgent,
    yielding: yieldingAgent,
    hanging: hangingAgent,
    paced: pacedAgent,
  },
});

// Beside the runtime: the bench asks for the clock and for what the probe counted.
const questions = new BroadcastChannel(`bench-host-${dbName}-${host}`);
questions.onmessage = ({ data }: MessageEvent<"clock" | "probe">) => {
  if (data === "clock") say(questions, { clock: stamp() });
  else if (data === "probe") say(questions, { probe: probe?.take() });
};
