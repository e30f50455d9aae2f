import { freshId, type Bench } from "./bench.js";
import { messageOf } from "../run/errors.js";
import { expectThat } from "./expect.js";
import { answering } from "./good-agents.js";
import { Gate } from "./patience.js";
import { Tab } from "./tab.js";

/** How many immediate follow-up runs a thread must accept. */
export const FOLLOW_UPS = 50;

/** Starts each run in the task in which the run before ends. */
export async function followUps(bench: Bench, on: "RUN_FINISHED" | "complete"): Promise<void> {
  const thread = bench.thread();
  const tab = new Tab(thread);
  const done = new Gate();
  const ended: string[] = [];
  let refusal: unknown;
  const next = (): void => {
    if (ended.length === FOLLOW_UPS) return done.open();
    const input = tab.inputOf([{ id: freshId("user"), role: "user", content: "go on" }]);
    const goOn = (how: string): void => {
      if (how !== on) return;
      ended.push(input.runId);
      next();
    };
    try {
      thread.start(answering("yes"), input).subscribe({
        next: (event) => goOn(event.type),
        complete: () => goOn("complete"),
        error: (error: unknown) => {
          refusal = error;
          done.open();
        },
      });
    } catch (error) {
      refusal = error;
      done.open();
    }
  };
  next();
  await bench.patience.within(done.opened, `${FOLLOW_UPS} runs, each started on the ${on} of the one before`);
  const rule = `a run started on the ${on} of the one before must not be refused`;
  expectThat(refusal === undefined, rule, `run ${ended.length + 1} was: ${messageOf(refusal)}`);
  expectThat(new Set(ended).size === FOLLOW_UPS, "each run must end once", `${ended.length} ends`);
}
