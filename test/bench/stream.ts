import { ONE_BY_ONE, PACKED_POST, PACKED_RECORD, RECORD, streamBaselines } from "./baselines.js";
import { median, medianOf, ratio, TAB_COUNTS, tabs } from "./beside.js";
import type { Context } from "./context.js";
import { figure, perSecond, repeat, shown } from "./figures.js";
import { freshHost, HOST, type Remote } from "./lab.js";
import { WORD } from "./pages/stamps.js";
import type { Reader, TabBench } from "./pages/tab.js";
import { pipelineOf, streamSizes } from "./pipeline.js";

/** What the first prototype of the design reached, on such a machine, by number of tabs. */
const PROTOTYPE: Readonly<Record<string, Readonly<Record<number, number>>>> = {
  sync: { 1: 186_000, 4: 168_000, 16: 127_000 },
  yielding: { 1: 70_000, 4: 58_000, 16: 41_000 },
  bare: { 1: 904_000, 4: 711_000, 16: 370_000 },
};

/** One run, from the agent's first event to the last tab's last. In ms. */
export async function streamOnce(
  readers: readonly Remote<TabBench>[],
  reader: Reader,
  agent: string,
  n: number,
): Promise<{ ms: number; emittingMs: number; frames: number }> {
  const threadId = crypto.randomUUID();
  const [runner, ...others] = readers;
  if (others.length > 0) {
    // So that they are at the thread's end and are handed the next run as it comes, not a snapshot of it.
    await runner!.stream(HOST, "frames", "sync", threadId, 1);
    for (const tab of others) await tab.follow(HOST, reader, threadId);
  }
  const following = others.map((tab) => tab.followed(threadId));
  const { delivered, emitted } = await runner!.stream(HOST, reader, agent, threadId, n);
  const all = [delivered, ...(await Promise.all(following))];
  // RUN_STARTED, START, END and RUN_FINISHED come on top.
  const expected = reader === "frames" ? n + 4 : n * WORD.length;
  for (const { amount } of all) {
    if (amount !== expected) throw new Error(`${agent}, ${reader}: ${amount} delivered instead of ${expected}`);
  }
  return {
    ms: Math.max(...all.map(({ at }) => at)) - emitted.first,
    emittingMs: emitted.last - emitted.first,
    frames: delivered.frames,
  };
}

export const AGENTS = [
  ["sync", "synchronous"],
  ["generator", "async generator"],
  ["yielding", "yielding every 10"],
  ["bare", "synchronous, no agent pipeline"],
] as const;

const READERS = [
  ["agent", "LocalAgent"],
  ["frames", "frames only"],
] as const;

export async function stream(context: Context): Promise<void> {
  const { lab, quick, samples, figures, note, show } = context;
  const sizes = streamSizes(quick);
  await pipelineOf(context, sizes[0]!, "sync");
  await streamBaselines(context);
  show();
  for (const tabCount of TAB_COUNTS) {
    const host = freshHost();
    const readers: Remote<TabBench>[] = [];
    for (let i = 0; i < tabCount; i++) readers.push(await lab.tab(host));
    const offsets: number[] = [];
    for (const tab of readers) offsets.push(await tab.clockOffset(HOST));
    const furthest = Math.max(...offsets.map(Math.abs)).toFixed(2);
    note(`stream: clocks of host and ${tabs(tabCount)} differ by at most ${furthest} ms`);
    for (const [agent, kind] of AGENTS) {
      for (const [reader, whither] of READERS) {
        // Sixteen tabs of two cores take long enough once.
        for (const n of tabCount === 16 ? sizes.slice(-1) : sizes) {
          let frames = 0;
          const values = await repeat(samples, async () => {
            const once = await streamOnce(readers, reader, agent, n);
            frames = once.frames;
            return perSecond(n, once.ms);
          });
          const rate = median(values);
          const prototype = n === 100_000 ? PROTOTYPE[agent]?.[tabCount] : undefined;
          const beside = [
            ...ratio(rate, medianOf(context, ONE_BY_ONE(tabCount)), "one by one"),
            ...ratio(rate, medianOf(context, RECORD(1_000)), "raw records of 1,000"),
            ...ratio(rate, medianOf(context, PACKED_RECORD), "packed ones"),
            ...ratio(rate, medianOf(context, PACKED_POST(tabCount)), "packed posts"),
            ...ratio(rate, perSecond(n, (await pipelineOf(context, n, agent)) ?? NaN), "its pipeline alone"),
            ...ratio(rate, prototype, `the prototype (${prototype === undefined ? "" : shown(prototype)})`),
            ...(reader === "frames" ? [`${frames} frames`] : []),
          ].join(", ");
          const name = `${n.toLocaleString("en-US")} deltas, ${kind}, ${tabs(tabCount)}, ${whither}`;
          const group = "stream: first event emitted → committed → delivered to the last tab";
          figures.push(figure(group, name, "events/s", values, beside));
        }
      }
    }
    await lab.closeTabs();
    show();
  }
}
