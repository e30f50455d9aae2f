import type { Note } from "./pages/scripted-notes.js";
import type { Attempt, Log } from "./pages/hammer.js";
import { check, type Shown } from "./soak/check.js";

/** What tabs, agents and the log say of the same threads. */
export interface HammerEvidence {
  /** Of all tabs. */
  readonly attempts: readonly Attempt[];
  /** In the order in which they were made. */
  readonly notes: readonly Note[];
  readonly log: Log;
  /** What each tab shows in the end. */
  readonly shown: readonly Shown[];
}

/** How a run is refused. */
export const BUSY = "thread-busy: Thread already running";

/** One sentence for each thing that must not be. */
export function faultsOf({ attempts, notes, log, shown }: HammerEvidence): string[] {
  const findings = check({ seen: [], log: log.runs, notes, shown: [...log.shown, ...shown] });
  const executed = new Set(notes.map(({ runId }) => runId));
  return [
    ...Object.values(findings).flat(),
    ...attempts.flatMap(({ runId, outcome = "nothing" }) => {
      if (outcome === "ok") return executed.has(runId) ? [] : [`${runId} was taken, and never executed`];
      if (outcome !== BUSY) return [`${runId} ended with ${outcome}`];
      return executed.has(runId) ? [`${runId} was refused, and executed`] : [];
    }),
    ...log.runs.flatMap(({ runId, status }) =>
      status === "finished" || status === "stopped" ? [] : [`${runId} is ${status}, and no host died`],
    ),
  ];
}
