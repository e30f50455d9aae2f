import { EventType } from "@ag-ui/core";
import { IndexedDBCheckpointStore } from "ag-ui-local-runtime/checkpoint";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";

const user = self.name;

/** Says whose it is, saves a checkpoint, then waits until it is stopped. */
const held = defineAgent(async function* ({ runId }, { signal }) {
  const messageId = `${runId}-a`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `of ${user.split("\n")[0]}` };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
  await new IndexedDBCheckpointStore({ user }).save({
    id: runId,
    graphId: "graph",
    runId,
    nodeId: "held",
    timestamp: 1,
    state: {
      input: { user },
      scratch: {},
      artifacts: {},
      diagnostics: {
        totalTokensUsed: 0,
        totalDurationMs: 0,
        nodeTimings: {},
        discoveryResults: {},
        guardrailResults: {},
        checkpointsSaved: 0,
        memoryReads: 0,
        memoryWrites: 0,
      },
    },
    nodeResults: {},
    visitedNodes: [],
    pendingEdges: [],
  });
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
});

serveRuntime({ agents: { held }, user });
