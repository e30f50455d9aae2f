import { EventType } from "@ag-ui/core";
import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { scriptedAgent } from "ag-ui-local-runtime/conformance";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { openBroadcastChannel } from "../../../src/platform/channel.js";
import { faultOf, faultyChannel } from "../hammer-channel.js";
import { randomFrom } from "../hammer-random.js";
import { scriptedAgents } from "./scripted-agents.js";
import { obeyLab } from "./scripted-control.js";
import { Notes } from "./scripted-notes.js";

// The worker's name is "<database>#<fault of its channel>-<anything>".
const [dbName = "faulty", host = ""] = self.name.split("#");
const fault = faultOf(host.split("-")[0]);

/** Counts for ever, whatever it is asked, and notes each number. */
const deaf = scriptedAgent(
  async ({ input: { threadId, runId }, emit }) => {
    const notes = new Notes(dbName);
    const execution = crypto.randomUUID();
    const messageId = `numbers-${runId}`;
    emit({ type: EventType.RUN_STARTED, threadId, runId });
    emit({ type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" });
    for (let i = 0; ; i++) {
      emit({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: i === 0 ? "0" : ` ${i}` });
      await notes.add({ is: "going", threadId, runId, execution });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  },
  { onAbort: "nothing" },
);

obeyLab();
const random = randomFrom(crypto.getRandomValues(new Uint32Array(1))[0]!);
const openChannel = fault === undefined ? openBroadcastChannel : faultyChannel(openBroadcastChannel, fault, random);
serveRuntime({
  agents: { ...scriptedAgents(dbName), deaf },
  runner: new IndexedDBAgentRunner({ dbName, openChannel }),
});
