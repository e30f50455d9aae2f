import type { Context } from "./context.js";
import { figure, type Figure } from "./figures.js";
import { freshHost, HOST } from "./lab.js";
import type { Commit } from "./pages/stamps.js";
import type { Sightings } from "./pages/tab-latency.js";

/** RUN_STARTED and TEXT_MESSAGE_START stand before the first delta. */
const FIRST_DELTA = 2;

const RATES = [
  { rate: 50, n: 200, quick: 50, prototype: "the prototype: p50 1.3, p99 5" },
  { rate: 500, n: 1_500, quick: 250, prototype: "the prototype: p50 1.5, p99 8 to 15" },
  { rate: 5_000, n: 15_000, quick: 2_500, prototype: "the prototype: p50 1.9, p99 17" },
] as const;

interface Watched {
  /** In ms, one for each delta. */
  readonly fromEmission: readonly number[];
  readonly fromCommit: readonly number[];
}

/**
 * From the emission of each of `n` deltas to where a person sees it, in ms.
 *
 * @param offset of the host's clock from the tab's, in ms
 */
export function emittedToSeen({ emitted, seen }: Sightings, n: number, offset: number): number[] {
  if (seen.length !== n) throw new Error(`${seen.length} deltas seen instead of ${n}`);
  if (emitted.some((at, i) => !(at >= (emitted[i - 1] ?? 0)))) throw new Error("deltas in a wrong order");
  return seen.map((at, i) => at - (emitted[i]! - offset));
}

/** As {@link emittedToSeen}, with the times since each was committed. */
function times(sightings: Sightings, commits: readonly Commit[], n: number, offset: number): Watched {
  const fromEmission = emittedToSeen(sightings, n, offset);
  const { seen } = sightings;
  let next = 0;
  const fromCommit = seen.map((at, i) => {
    while ((commits[next + 1]?.firstSeq ?? Infinity) <= i + FIRST_DELTA) next++;
    const commit = commits[next];
    if (commit === undefined) throw new Error("no commits were counted");
    return at - (commit.at - offset);
  });
  return { fromEmission, fromCommit };
}

type Where = "own tab" | "same host" | "other host";

/** One run at `rate`, seen by one tab: the one that runs, or one that follows. */
async function watchOnce({ lab }: Context, where: Where, rate: number, n: number): Promise<Watched> {
  const host = freshHost(true);
  const threadId = crypto.randomUUID();
  const runs = await lab.tab(host);
  await runs.stream(HOST, "frames", "sync", threadId, 1);
  const sees =
    where === "own tab" ? runs : await lab.tab(where === "same host" ? host : { ...host, host: "b", probe: false });
  const offset = await sees.clockOffsetTo(host);
  if (sees !== runs) await sees.watch(HOST, threadId);
  await runs.commits(HOST);
  const own = await runs.runWatched(HOST, threadId, n, rate);
  const sightings = sees === runs ? own : await sees.watched(threadId);
  const commits = ((await runs.commits(HOST)) ?? []).filter((it) => it.threadId === threadId);
  await lab.closeTabs();
  return times(sightings, commits, n, offset);
}

/** From an agent's delta to where a person sees it. */
export async function latency(context: Context): Promise<void> {
  const { lab, quick, figures, show } = context;
  const tab = await lab.tab(freshHost());
  await tab.latencies(HOST, 500, 200);
  for (const { rate, prototype, ...counts } of RATES) {
    const name = `emitted → committed → received, ${rate.toLocaleString("en-US")} deltas a second`;
    const values = await tab.latencies(HOST, rate, quick ? counts.quick : counts.n);
    figures.push(figure("latency: one tab, frames only", name, "ms", values, prototype));
  }
  await lab.closeTabs();
  const raw = await lab.raw();
  await raw.follows(50);
  const relayed = await raw.follows(quick ? 50 : 400);
  const way = "committed in one worker → told → read in another → received";
  figures.push(figure("latency: two workers without the runtime", way, "ms", relayed));
  await lab.closeTabs();
  for (const where of ["own tab", "same host", "other host"] as const) {
    const group = {
      "own tab": "latency: the tab that runs, LocalAgent's onMessagesChanged",
      "same host": "latency: a tab that follows in the same host, LocalAgent's onMessagesChanged",
      "other host": "latency: a tab that follows through another host, LocalAgent's onMessagesChanged",
    }[where];
    await watchOnce(context, where, 500, 100);
    for (const { rate, ...counts } of RATES) {
      const { fromEmission, fromCommit } = await watchOnce(context, where, rate, quick ? counts.quick : counts.n);
      const row = (name: string, values: readonly number[], beside?: string): Figure =>
        figure(group, `${name}, ${rate.toLocaleString("en-US")} deltas a second`, "ms", values, beside);
      const aim = where === "other host" ? "the aim: under 100 ms" : undefined;
      figures.push(row("emitted → visible", fromEmission), row("of it: committed → visible", fromCommit, aim));
    }
    show();
  }
}
