import { median, ratio } from "./beside.js";
import type { Context } from "./context.js";
import { figure } from "./figures.js";
import { freshHost, HOST } from "./lab.js";

/** Starts that are timed: meanwhile about as many wait. */
const STARTS = 20;
const FEW = STARTS + 1;
/** As many as may wait in one thread. */
const MANY = 1_000;
/** Of the first and of the last runs that were added. */
const ADDED = 20;

/** What runs that wait cost: to be added, listed, and started. */
export async function waiting({ lab, quick, figures }: Context): Promise<void> {
  const tab = await lab.tab(freshHost());
  const measured = async (count: number) => {
    const threadId = crypto.randomUUID();
    await tab.keepBusy(HOST, threadId);
    const added = await tab.enqueue(HOST, threadId, count);
    const listed = await tab.listWaiting(HOST, threadId, quick ? 5 : 30, count);
    const started = await tab.startsOfNext(HOST, threadId, STARTS);
    await tab.forget(HOST, threadId);
    return { added: added.slice(-ADDED), listed, started };
  };
  await measured(FEW);
  const few = await measured(FEW);
  const many = await measured(quick ? 200 : MANY);
  const group = `waiting: ${(quick ? 200 : MANY).toLocaleString("en-US")} runs wait in a thread`;
  for (const [what, name] of [
    ["added", "a run is added to them (acknowledged: it is in the log)"],
    ["started", "the end of a run → the first event of the next one"],
    ["listed", "the list of them in a tab"],
  ] as const) {
    const beside = ratio(median(many[what]), median(few[what]), `with ${FEW}`).join();
    figures.push(figure(group, name, "ms", many[what], beside));
  }
  await lab.closeTabs();
}
