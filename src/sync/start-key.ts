/** A run that is about to start, whether it is in the log or not: its id is unique in its thread only. */
export const startKey = (threadId: string, runId: string): string => JSON.stringify([threadId, runId]);
