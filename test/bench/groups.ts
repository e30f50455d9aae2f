import type { Context } from "./context.js";
import { figure, perSecond, repeat, shown } from "./figures.js";
import { HOST, type Lab, type Remote } from "./lab.js";
import type { RawBench } from "./pages/raw.js";
import { PIPELINE_GENERATOR, PIPELINE_SYNC, PIPELINE_YIELDING } from "./pages/stages.js";
import type { Probe } from "./pages/stamps.js";
import type { Reader, TabBench } from "./pages/tab.js";
import { runners } from "./runners.js";
import { threads } from "./threads.js";

const WORD_LENGTH = "word ".length;

/** What a throwaway spike of the design reached, on the machine of FACTS.md, by number of tabs. */
const SPIKE: Readonly<Record<string, readonly [one: number, four: number]>> = {
  sync: [186_000, 168_000],
  yielding: [70_000, 58_000],
  bare: [904_000, 711_000],
};

const medianOf = ({ figures }: Context, name: string): number | undefined =>
  figures.find((it) => it.name === name)?.median;

function ratio(value: number, base: number | undefined, what: string): string[] {
  if (base === undefined || Number.isNaN(base)) return [];
  const times = value / base;
  return [`${times >= 2 ? `${shown(times)} ×` : `${(times * 100).toFixed(0)} % of`} ${what}`];
}

// ---- what the browser itself takes

const ONE_BY_ONE = (tabs: number): string =>
  `one put and one awaited callback per event, ${tabs} tab${tabs > 1 ? "s" : ""}`;
const RECORD = (size: number): string => `record of ${size} events per relaxed transaction`;
const CALL = "comlink call, there and back";
const SWAP = "compare and swap, strict transaction";
const LOCK = "Web Lock taken and let go";
const RAW = "baselines (a SharedWorker without the runtime)";

/** Runs added to a thread to see whether a start costs more then. */
const LONG_THREAD = 1_000;

/** How many tabs stand beside one. */
const MANY = 4;

async function rawTabs(lab: Lab): Promise<Remote<RawBench>> {
  const first = await lab.raw();
  for (let i = 1; i < MANY; i++) await lab.raw();
  return first;
}

async function streamBaselines(context: Context): Promise<void> {
  const { lab, quick, samples, figures } = context;
  const raw = await rawTabs(lab);
  for (const tabs of [1, MANY]) {
    const count = quick ? 500 : 2_000;
    const values = await repeat(samples, async () => perSecond(count, await raw.perEvent(count, tabs)));
    figures.push(figure(RAW, ONE_BY_ONE(tabs), "events/s", values));
  }
  for (const size of [100, 1_000]) {
    const count = quick ? 10_000 : 40_000;
    const values = await repeat(samples, async () => perSecond(count, await raw.records(count, size)));
    figures.push(figure(RAW, RECORD(size), "events/s", values, `FACTS.md ${size === 100 ? "100,000" : "440,000"}`));
  }
  for (const tabs of [1, MANY]) {
    for (const size of [16, 64, 256]) {
      const count = quick ? 16_384 : 65_536;
      const values = await repeat(samples, async () => perSecond(count, await raw.posts(count, size, tabs)));
      const facts = tabs === 1 ? { 16: "261,000", 64: "384,000", 256: "435,000" }[size] : { 16: "72,000" }[size];
      const name = `${size} events per message to ${tabs} port${tabs > 1 ? "s" : ""}`;
      figures.push(figure(RAW, name, "events/s", values, facts && `FACTS.md ${facts}`));
    }
  }
  await lab.closeTabs();
}

async function startBaselines({ lab, quick, figures }: Context): Promise<void> {
  const raw = await lab.raw();
  const count = quick ? 50 : 200;
  for (const [name, work] of [
    [CALL, () => raw.calls(count)],
    [SWAP, () => raw.swaps(count)],
    [LOCK, () => raw.locks(count)],
  ] as const) {
    await work();
    figures.push(figure(RAW, name, "ms", await work()));
  }
  await lab.closeTabs();
}

// ---- streaming

let databases = 0;
const freshHost = (probe = false) => ({ dbName: `bench-${++databases}`, host: "a", probe });

/** One run, from the agent's first event to the last tab's last. In ms. */
async function streamOnce(
  tabs: readonly Remote<TabBench>[],
  reader: Reader,
  agent: string,
  n: number,
): Promise<{ ms: number; emittingMs: number; frames: number }> {
  const threadId = crypto.randomUUID();
  const [runner, ...others] = tabs;
  if (others.length > 0) {
    // So that they are at the thread's end and are handed the next run as it comes, not a snapshot of it.
    await runner!.stream(HOST, "frames", "sync", threadId, 1);
    for (const tab of others) await tab.follow(HOST, reader, threadId);
  }
  const following = others.map((tab) => tab.followed(threadId));
  const { delivered, emitted } = await runner!.stream(HOST, reader, agent, threadId, n);
  const all = [delivered, ...(await Promise.all(following))];
  // RUN_STARTED, START, END and RUN_FINISHED come on top.
  const expected = reader === "frames" ? n + 4 : n * WORD_LENGTH;
  for (const { amount } of all) {
    if (amount !== expected) throw new Error(`${agent}, ${reader}: ${amount} delivered instead of ${expected}`);
  }
  return {
    ms: Math.max(...all.map(({ at }) => at)) - emitted.first,
    emittingMs: emitted.last - emitted.first,
    frames: delivered.frames,
  };
}

const AGENTS = [
  ["sync", "synchronous"],
  ["generator", "async generator"],
  ["yielding", "yielding every 10"],
  ["bare", "synchronous, no agent pipeline"],
] as const;

const READERS = [
  ["agent", "LocalAgent"],
  ["frames", "frames only"],
] as const;

async function stream(context: Context): Promise<void> {
  const { lab, quick, samples, figures, note } = context;
  if (pipelineOf(context, 20_000, "sync") === undefined) await pipeline(context);
  await streamBaselines(context);
  for (const tabCount of [1, MANY]) {
    const host = freshHost();
    const tabs = await Promise.all(Array.from({ length: tabCount }, () => lab.tab(host)));
    const offsets: number[] = [];
    for (const tab of tabs) offsets.push(await tab.clockOffset(HOST));
    const furthest = Math.max(...offsets.map(Math.abs)).toFixed(2);
    note(`clocks of host and ${tabCount} tab(s) differ by at most ${furthest} ms`);
    for (const [agent, kind] of AGENTS) {
      for (const [reader, whither] of READERS) {
        for (const n of quick ? [20_000] : [20_000, 100_000]) {
          let frames = 0;
          const values = await repeat(samples, async () => {
            const once = await streamOnce(tabs, reader, agent, n);
            frames = once.frames;
            return perSecond(n, once.ms);
          });
          const rate = figure("", "", "events/s", values).median;
          const spike = n === 100_000 ? SPIKE[agent]?.[tabCount === 1 ? 0 : 1] : undefined;
          const beside = [
            ...ratio(rate, medianOf(context, ONE_BY_ONE(tabCount)), "one by one"),
            ...ratio(rate, medianOf(context, RECORD(1_000)), "raw records of 1,000"),
            ...ratio(rate, perSecond(n, pipelineOf(context, n, agent) ?? NaN), "its pipeline alone"),
            ...ratio(rate, spike, `the spike (${spike === undefined ? "" : shown(spike)})`),
            ...(reader === "frames" ? [`${frames} frames`] : []),
          ].join(", ");
          const name = `${n.toLocaleString("en-US")} deltas, ${kind}, ${tabCount} tab${tabCount > 1 ? "s" : ""}, ${whither}`;
          figures.push(
            figure(
              "stream: first event emitted → committed → delivered to the last tab",
              name,
              "events/s",
              values,
              beside,
            ),
          );
        }
      }
    }
    await lab.closeTabs();
  }
}

/** Where a host's time goes that is storage and ports; the rest is its pipeline. */
async function where({ lab, quick, samples, figures }: Context): Promise<void> {
  const n = quick ? 20_000 : 100_000;
  for (const tabCount of [1, MANY]) {
    const host = freshHost(true);
    const tabs = await Promise.all(Array.from({ length: tabCount }, () => lab.tab(host)));
    for (const [agent, kind] of AGENTS) {
      const runs: ({ ms: number; emittingMs: number } & Probe)[] = [];
      for (let i = 0; i <= samples; i++) {
        await tabs[0]!.probe(HOST);
        const { ms, emittingMs } = await streamOnce(tabs, "frames", agent, n);
        const probe = await tabs[0]!.probe(HOST);
        if (i > 0 && probe !== undefined) runs.push({ ms, emittingMs, ...probe });
      }
      const of = (name: string, pick: (run: (typeof runs)[number]) => number, beside?: string): void => {
        const group = `where: ${n.toLocaleString("en-US")} deltas, ${kind}, ${tabCount} tab(s), frames only`;
        figures.push(figure(group, name, "ms", runs.map(pick), beside));
      };
      const commits = `${
        figure(
          "",
          "",
          "ms",
          runs.map(({ appends }) => appends),
        ).median
      } commits`;
      of("all", ({ ms }) => ms);
      of("agent emitting (with what its events set off in the same tasks)", ({ emittingMs }) => emittingMs);
      of("appending transactions, from open to complete", ({ appendMs }) => appendMs, commits);
      of("of it: serialising in put()", ({ putMs }) => putMs);
      of("settling transaction", ({ settleMs }) => settleMs);
      of("serialising in postMessage() of frames", ({ postMs }) => postMs);
    }
    await lab.closeTabs();
  }
}

async function latency({ lab, quick, figures }: Context): Promise<void> {
  const tab = await lab.tab(freshHost());
  await tab.latencies(HOST, 500, 200);
  for (const [rate, n, beside] of [
    [50, quick ? 50 : 200, "the spike: p50 1.3, p99 5"],
    [500, quick ? 250 : 1_500, "the spike: p50 1.5, p99 8 to 15"],
    [5_000, quick ? 2_500 : 15_000, "the spike: p50 1.9, p99 17"],
  ] as const) {
    const name = `emitted → committed → received, ${rate.toLocaleString("en-US")} deltas a second`;
    figures.push(figure("latency: one tab, frames only", name, "ms", await tab.latencies(HOST, rate, n), beside));
  }
  await lab.closeTabs();
}

// ---- starting, refusing, stopping

async function runStart(context: Context): Promise<void> {
  const { lab, quick, figures } = context;
  await startBaselines(context);
  const host = freshHost();
  const tab = await lab.tab(host);
  const OTHER = "other";
  await tab.connect(OTHER, { ...host, host: "b" });

  const parts = [CALL, SWAP, LOCK].map((name) => medianOf(context, name));
  const sum = parts.reduce<number>((total, part) => total + (part ?? 0), 0);
  const runs = quick ? 50 : 200;
  await tab.starts(HOST, "warm-up", 20);
  const times = await tab.starts(HOST, "thread", runs);
  const later: number[] = [];
  // In pieces: one call of a page must end within its deadline.
  for (let left = quick ? 0 : LONG_THREAD; left > 0; left -= runs)
    later.push(...(await tab.starts(HOST, "thread", runs)));
  const START = "run-start";
  const floor = `call + swap + lock alone: ${shown(sum)} ms; the spike: p50 4.2, p99 14`;
  figures.push(figure(START, `runAgent() → first event, ${runs} runs in one thread`, "ms", times, floor));
  const part = Math.floor(runs / 4);
  figures.push(figure(START, `of it: the first ${part}`, "ms", times.slice(0, part)));
  figures.push(figure(START, `of it: the last ${part}`, "ms", times.slice(-part)));
  if (later.length > 0) {
    const name = `the same thread, runs ${runs + later.length - part} to ${runs + later.length}`;
    figures.push(figure(START, name, "ms", later.slice(-part), "the spike: the same after 1,200 runs"));
  }

  const count = quick ? 20 : 100;
  for (const [asker, name, beside] of [
    [HOST, "same host", "the spike: p50 0.2, p99 2"],
    [OTHER, "other host", "the spike: p50 0.9, p99 6"],
  ] as const) {
    await tab.refusals(HOST, asker, `warm-up ${name}`, 5);
    const refused = await tab.refusals(HOST, asker, `busy ${name}`, count);
    figures.push(figure(START, `a busy thread is refused, ${name}`, "ms", refused, beside));
  }
  for (const [asker, name, beside] of [
    [HOST, "own host", "the spike: 4"],
    [OTHER, "other host", "the spike: 7"],
  ] as const) {
    await tab.stops(HOST, asker, 5);
    const stopped = await tab.stops(HOST, asker, quick ? 10 : 60);
    figures.push(figure(START, `stop → terminal event in the tab that runs, ${name}`, "ms", stopped.owner, beside));
    if (asker === HOST) continue;
    figures.push(figure(START, `stop → terminal event in the tab that asked, ${name}`, "ms", stopped.asker, beside));
  }
  await lab.closeTabs();
}

const STAGES = (n: number): string => `pipeline: ${n.toLocaleString("en-US")} deltas, each stage alone`;

/** What the pipeline of an agent takes with nothing behind it, in ms. */
function pipelineOf({ figures }: Context, n: number, agent: string): number | undefined {
  const name = { sync: PIPELINE_SYNC, generator: PIPELINE_GENERATOR, yielding: PIPELINE_YIELDING }[agent];
  return figures.find((it) => it.group === STAGES(n) && it.name === name)?.median;
}

async function pipeline({ lab, quick, samples, figures }: Context): Promise<void> {
  const tab = await lab.tab(freshHost());
  for (const n of quick ? [20_000] : [20_000, 100_000]) {
    const stages = await tab.pipeline(n, samples);
    for (const [name, values] of Object.entries(stages)) {
      const { median } = figure("", "", "ms", values);
      const beside = `${((median / n) * 1_000).toFixed(2)} µs per event`;
      figures.push(
        figure(`pipeline: ${n.toLocaleString("en-US")} deltas, each stage alone`, name, "ms", values, beside),
      );
    }
  }
  await lab.closeTabs();
}

export const GROUPS: Readonly<Record<string, (context: Context) => Promise<void>>> = {
  pipeline,
  stream,
  where,
  latency,
  "run-start": runStart,
  runners,
  threads,
};
