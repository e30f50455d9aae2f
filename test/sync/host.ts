import { EventType, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { type AgentContext, defineAgent } from "../../src/worker/index.js";
import { startHost } from "../../src/runtime/node.js";

/*
 * A host of its own process, for tests that kill it. Settings: JSON in HOST. It prints a line for each run that it executes.
 */

interface HostSettings {
  readonly name: string;
  readonly servers: readonly string[];
  readonly space: string;
  /** How many numbers a run counts, and the pause before each in ms. */
  readonly count: number;
  readonly everyMs: number;
}

const { name, servers, space, count, everyMs } = JSON.parse(process.env["HOST"] ?? "{}") as HostSettings;

const counter = defineAgent<BaseEvent>(async function* (
  { runId }: RunAgentInput,
  { signal }: AgentContext,
): AsyncGenerator<BaseEvent> {
  console.log(`executes ${runId}`);
  const messageId = `numbers-${runId}`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
  for (let n = 0; n < count && !signal.aborted; n++) {
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${n} ` } as BaseEvent;
  }
  yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
});

const host = await startHost({
  agents: { counter },
  agentPolicies: { counter: { recovery: "auto" } },
  sync: { servers, space, device: name },
});
host.status$.subscribe(({ isCurrent }) => isCurrent && console.log("ready"));
