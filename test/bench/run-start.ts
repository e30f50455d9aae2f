import { CALL, LOCK, startBaselines, SWAP } from "./baselines.js";
import { medianOf } from "./beside.js";
import type { Context } from "./context.js";
import { figure, shown } from "./figures.js";
import { freshHost, HOST } from "./lab.js";

/** Runs added to a thread to see whether a start costs more then. */
const LONG_THREAD = 1_000;

export async function runStart(context: Context): Promise<void> {
  const { lab, quick, figures } = context;
  await startBaselines(context);
  const tab = await lab.tab(freshHost());

  const parts = [CALL, SWAP, LOCK].map((name) => medianOf(context, name));
  const sum = parts.reduce<number>((total, part) => total + (part ?? 0), 0);
  const runs = quick ? 50 : 200;
  await tab.starts(HOST, "warm-up", 20);
  const times = await tab.starts(HOST, "thread", runs);
  const later: number[] = [];
  // In pieces: one call of a page must end within its deadline.
  for (let left = quick ? 0 : LONG_THREAD; left > 0; left -= runs)
    later.push(...(await tab.starts(HOST, "thread", runs)));
  const START = "run-start: the runs of one thread";
  const floor = `call + swap + lock alone: ${shown(sum)} ms; the prototype: p50 4.2, p99 14`;
  figures.push(figure(START, `runAgent() → first event, ${runs} runs`, "ms", times, floor));
  const part = Math.floor(runs / 4);
  figures.push(figure(START, `of it: the first ${part}`, "ms", times.slice(0, part)));
  figures.push(figure(START, `of it: the last ${part}`, "ms", times.slice(-part)));
  if (later.length > 0) {
    const name = `the same thread, runs ${runs + later.length - part} to ${runs + later.length}`;
    figures.push(figure(START, name, "ms", later.slice(-part), "the prototype: the same after 1,200 runs"));
  }
  await lab.closeTabs();
}
