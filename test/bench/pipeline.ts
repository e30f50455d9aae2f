import type { Context } from "./context.js";
import { figure } from "./figures.js";
import { freshHost } from "./lab.js";
import { median } from "./beside.js";
import { PIPELINE_GENERATOR, PIPELINE_SYNC, PIPELINE_YIELDING } from "./pages/stages.js";

const STAGES = (n: number): string => `pipeline: ${n.toLocaleString("en-US")} deltas, each stage alone`;

/** Deltas of the streams, the largest last. */
export const streamSizes = (quick: boolean): readonly number[] => (quick ? [20_000] : [20_000, 100_000]);

/** What the pipeline of an agent takes with nothing behind it, in ms; measured where it was not. */
export async function pipelineOf(context: Context, n: number, agent: string): Promise<number | undefined> {
  const name = { sync: PIPELINE_SYNC, generator: PIPELINE_GENERATOR, yielding: PIPELINE_YIELDING }[agent];
  if (!context.figures.some(({ group }) => group === STAGES(n))) await pipeline(context);
  return context.figures.find((it) => it.group === STAGES(n) && it.name === name)?.median;
}

export async function pipeline({ lab, quick, samples, figures }: Context): Promise<void> {
  const tab = await lab.tab(freshHost());
  for (const n of streamSizes(quick)) {
    const stages = await tab.pipeline(n, samples);
    for (const [name, values] of Object.entries(stages)) {
      const beside = `${((median(values) / n) * 1_000).toFixed(2)} µs per event`;
      figures.push(figure(STAGES(n), name, "ms", values, beside));
    }
  }
  await lab.closeTabs();
}
