import { median, TAB_COUNTS, tabs } from "./beside.js";
import type { Context } from "./context.js";
import { figure } from "./figures.js";
import { freshHost, HOST, type Remote } from "./lab.js";
import type { Probe } from "./pages/stamps.js";
import type { TabBench } from "./pages/tab.js";
import { pipelineOf } from "./pipeline.js";
import { AGENTS, streamOnce } from "./stream.js";

/** Where a host's time goes that is storage and ports; the rest is its pipeline. */
export async function where(context: Context): Promise<void> {
  const { lab, quick, samples, figures, show } = context;
  const n = quick ? 20_000 : 100_000;
  await pipelineOf(context, n, "sync");
  for (const tabCount of TAB_COUNTS) {
    const host = freshHost(true);
    const readers: Remote<TabBench>[] = [];
    for (let i = 0; i < tabCount; i++) readers.push(await lab.tab(host));
    for (const [agent, kind] of AGENTS) {
      const runs: ({ ms: number; emittingMs: number } & Probe)[] = [];
      for (let i = 0; i <= samples; i++) {
        await readers[0]!.probe(HOST);
        const { ms, emittingMs } = await streamOnce(readers, "frames", agent, n);
        const probe = await readers[0]!.probe(HOST);
        if (i > 0 && probe !== undefined) runs.push({ ms, emittingMs, ...probe });
      }
      const of = (name: string, pick: (run: (typeof runs)[number]) => number, beside?: string): void => {
        const group = `where: ${n.toLocaleString("en-US")} deltas, ${kind}, ${tabs(tabCount)}, frames only`;
        figures.push(figure(group, name, "ms", runs.map(pick), beside));
      };
      const alone = await pipelineOf(context, n, agent);
      const pipelineMs = alone ?? 0;
      of("all", ({ ms }) => ms);
      of("agent emitting (with what its events set off in the same tasks)", ({ emittingMs }) => emittingMs);
      if (alone !== undefined) of("the agent's pipeline, as it was alone", () => alone);
      const commits = `${median(runs.map(({ appends }) => appends))} commits`;
      of("appending transactions, from open to complete", ({ appendMs }) => appendMs, commits);
      of("of it: serialising in put()", ({ putMs }) => putMs);
      of("settling transaction", ({ settleMs }) => settleMs);
      const posts = `${median(runs.map(({ frames }) => frames))} frames`;
      of("serialising in postMessage() of frames", ({ postMs }) => postMs, posts);
      of(
        "the rest: all without pipeline, put(), settling and postMessage()",
        ({ ms, putMs, settleMs, postMs }) => ms - pipelineMs - putMs - settleMs - postMs,
        "accept, pack, fold, waiting for commits, the tabs' own tasks",
      );
    }
    await lab.closeTabs();
    show();
  }
}
