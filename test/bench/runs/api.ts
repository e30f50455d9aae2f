import type { LocalAgentRunner } from "ag-ui-local-runtime";
import type { Contestant } from "./contestant.js";
import { liveThreads } from "./live-thread.js";
import { wholeRun } from "./whole-run.js";
import type { Workload } from "./workload.js";

/** What a process or a worker measures when it is asked to. */
export function runsApi<Who extends string>(
  contestants: Readonly<Record<Who, () => Promise<Contestant>>>,
  open: () => LocalAgentRunner,
) {
  return {
    /** In ms. */
    run: (who: Who, workload: Workload): Promise<number> => wholeRun(contestants[who], workload),
    ...liveThreads(open),
  };
}

export type RunsApi<Who extends string> = ReturnType<typeof runsApi<Who>>;
