import { EventType } from "@ag-ui/core";
import { Encryption } from "ag-ui-local-runtime/encryption";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";
import { ownName } from "./worker-name.js";

/** "<database>" or "<database>#plain" */
const [dbName = "", plain] = ownName().split("#");

/** Says what it was asked word by word; after "hold" it goes on when it may take the lock of that name. */
const echo = defineAgent(async function* (input, { signal }) {
  const { threadId, runId } = input;
  const asked = String(input.messages.at(-1)?.content);
  const messageId = `a-${runId}`;
  yield { type: EventType.RUN_STARTED, threadId, runId };
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  for (const delta of `You said: ${asked}`.match(/\S+\s*/g) ?? []) {
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta };
  }
  if (asked.includes("hold")) await navigator.locks.request("locked-hold", { signal }, () => undefined);
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
  yield { type: EventType.STATE_SNAPSHOT, snapshot: { heard: asked } };
  yield { type: EventType.RUN_FINISHED, threadId, runId };
});

serveRuntime({
  dbName,
  agents: { echo },
  ...(plain === undefined && { encryption: new Encryption() }),
});
