/** Tells a run of a thread from others, also from one that had the same id: an answer may have that of the run that asked. */
export const runKey = ({ startedAt, runId }: { readonly startedAt: number; readonly runId: string }): string =>
  `${startedAt} ${runId}`;
