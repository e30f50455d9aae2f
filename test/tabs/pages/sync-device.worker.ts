import { serveRuntime } from "ag-ui-local-runtime/worker";
import { caller } from "./caller-agent.js";
import { obeyLab } from "./scripted-control.js";
import { scriptedAgents } from "./scripted-agents.js";
import { deviceSettings, loadedChannel } from "./sync-name.js";
import { ownName } from "./worker-name.js";

const { dbName, servers, space, device, isEncrypted, keep = "all" } = deviceSettings(ownName());

// Where the list is full, WebKit leaves out what is loaded later: by default after 250.
performance.setResourceTimingBufferSize(10_000);
const asked = new BroadcastChannel(loadedChannel(dbName));
asked.onmessage = ({ data }) => {
  if (data === "what") asked.postMessage(performance.getEntriesByType("resource").map(({ name }) => name));
};

obeyLab();
serveRuntime({
  dbName,
  agents: { ...scriptedAgents(dbName), caller },
  ...(isEncrypted === true && { encryption: {} }),
  ...(typeof keep === "number" && { limits: { maxThreads: keep } }),
  ...(servers.length > 0 && {
    // On each of a cluster: whichever of them is lost, the others have the space.
    sync: { servers, space, device, keep: keep === "all" ? keep : "opened", replicas: servers.length },
  }),
});
