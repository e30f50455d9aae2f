/** Names of the stages that others stand beside. */
export const PIPELINE_SYNC = "pipeline, synchronous agent, no-op sink";
export const PIPELINE_GENERATOR = "pipeline, async generator, no-op sink";
export const PIPELINE_YIELDING = "pipeline, yielding every 10, no-op sink";
