import { emptyCheckpoint, uuid6, type Checkpoint, type CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";

let steps = 0;

/** Ids that grow, as those of LangGraph do. */
export const nextId = (): string => uuid6(++steps);

export const threadConfig = (thread_id: string, checkpoint_ns = ""): RunnableConfig => ({
  configurable: { thread_id, checkpoint_ns },
});

export const metadataOf = (step: number): CheckpointMetadata => ({ source: "loop", step, parents: {} });

/** A checkpoint whose channels all have this version. */
export const checkpointOf = (values: Record<string, unknown>, version = 1, id = nextId()): Checkpoint => ({
  ...emptyCheckpoint(),
  id,
  channel_values: values,
  channel_versions: Object.fromEntries(Object.keys(values).map((channel) => [channel, version])),
});
