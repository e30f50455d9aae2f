/** A key of a run by its id, which is unique in its thread only, whether the run is in the log or not. */
export const idKey = (threadId: string, runId: string): string => JSON.stringify([threadId, runId]);
