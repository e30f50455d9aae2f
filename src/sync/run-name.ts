import type { NamedRun } from "../storage/rows.js";

/**
 * How entries name a run of their thread: by its id. A run that answers an earlier one may have that one's id (CopilotKit answers
 * so, on several devices at once if they are offline): its name is a JSON list of the id and the id of the answer.
 */
export const runName = ({ runId, answerId }: NamedRun): string =>
  answerId === undefined && !runId.startsWith("[") ? runId : JSON.stringify([runId, answerId]);

/** The run of a name; of one that {@link runName} does not make, the run whose id it is. */
export function namedRun(name: string): NamedRun {
  if (!name.startsWith("[")) return { runId: name };
  try {
    const [runId, answerId]: unknown[] = JSON.parse(name);
    if (typeof runId === "string") return { runId, answerId: typeof answerId === "string" ? answerId : undefined };
  } catch {
    // It is an id.
  }
  return { runId: name };
}
