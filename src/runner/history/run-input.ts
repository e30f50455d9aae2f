import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import type { Chunk } from "../../run/types.js";
import type { PersistedInput, RunStore } from "../../storage/run-store.js";

/** Adds the request's messages to a RUN_STARTED that was made without knowing them. */
export function withInput(started: BaseEvent, { messages }: PersistedInput): BaseEvent {
  if (started.type !== EventType.RUN_STARTED || started["input"] !== undefined) return started;
  const { threadId, runId } = started as BaseEvent & { threadId: string; runId: string };
  return {
    ...started,
    input: { threadId, runId, messages: [...messages], tools: [], context: [], forwardedProps: {}, state: {} },
  };
}

/** Completes a run that was settled before its first event was committed: its messages are in its row. */
export async function completed(store: Pick<RunStore, "input">, chunks: readonly Chunk[]): Promise<readonly Chunk[]> {
  const [first, ...rest] = chunks;
  const entry = first?.entries[0];
  if (first?.firstSeq !== 0 || entry?.event.type !== EventType.RUN_STARTED || entry.event["input"] !== undefined) {
    return chunks;
  }
  const input = await store.input(first.threadId, first.runIndex);
  if (input === undefined) return chunks;
  return [{ ...first, entries: [{ event: withInput(entry.event, input) }, ...first.entries.slice(1)] }, ...rest];
}
