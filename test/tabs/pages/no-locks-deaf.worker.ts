import "./without-locks.js";
import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { NEVER } from "rxjs";
import { openBroadcastChannel, type OpenChannel } from "../../../src/platform/channel.js";
import { hostChannelName } from "../../../src/platform/names.js";
import { scriptedAgents } from "./scripted-agents.js";
import { obeyLab } from "./scripted-control.js";

const dbName = self.name.split("#")[0]!;

/** It hears no other host: what it has lost it learns from the database alone. */
const openChannel: OpenChannel = (name) => {
  const channel = openBroadcastChannel(name);
  return name === hostChannelName(dbName) ? { ...channel, messages$: NEVER } : channel;
};

obeyLab();
serveRuntime({ agents: scriptedAgents(dbName), runner: new IndexedDBAgentRunner({ dbName, openChannel }) });
