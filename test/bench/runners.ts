import type { Context } from "./context.js";
import { figure, perSecond, shown } from "./figures.js";
import type { Remote } from "./lab.js";
import type { NodeContestant, NodeRuns } from "./node/child.js";
import { CutOff, startNode } from "./node/process.js";
import type { Kind, Workload } from "./runs/workload.js";

/** A run that takes longer is cut off. */
const CAP_MS = 60_000;
/** A run that takes longer is measured once, and that is its warm-up too. */
const LONG_MS = 20_000;
/** Small runs are repeated until their code is compiled. */
const WARM_UP_EVENTS = 20_000;

const KINDS: readonly (readonly [Kind, string])[] = [
  ["text", "text deltas of one message"],
  ["args", "argument deltas of one tool call"],
  ["state", "state deltas, small state"],
  ["big-state", "state deltas, state of 200 KB"],
];

const sizesOf = (kind: Kind, quick: boolean): readonly number[] =>
  quick ? [1_000, 10_000] : kind === "big-state" ? [1_000, 10_000] : [1_000, 10_000, 100_000];

const seconds = (ms: number): string => (ms > CAP_MS ? `more than ${CAP_MS / 1_000} s` : `${shown(ms / 1_000)} s`);

/** A runner in the place where it is measured. */
interface Entrant {
  readonly name: string;
  run(workload: Workload): Promise<number>;
}

type Measured =
  | { readonly is: "measured"; readonly values: readonly number[]; readonly median: number }
  /** Not to its end, or not at all. */
  | { readonly is: "over"; readonly remark: string; readonly atLeast: number };

async function sample({ run }: Entrant, workload: Workload, samples: number): Promise<Measured> {
  const values: number[] = [];
  try {
    let warm = await run(workload);
    if (warm > LONG_MS) values.push(warm);
    else {
      for (let done = workload.events; done < WARM_UP_EVENTS; done += workload.events) warm = await run(workload);
      while (values.length < samples) values.push(await run(workload));
    }
  } catch (error) {
    if (!(error instanceof CutOff)) throw error;
    return { is: "over", remark: seconds(Infinity), atLeast: Infinity };
  }
  return { is: "measured", values, median: figure("", "", "ms", values).median };
}

/** What `size` events take at least, as the smaller sizes have grown; in ms. */
function expected(size: number, smaller: ReadonlyMap<number, Measured>): number {
  const known = [...smaller].map(([n, it]) => [n, it.is === "measured" ? it.median : it.atLeast] as const);
  const [n, ms] = known.at(-1) ?? [size, 0];
  const [nBefore, msBefore] = known.at(-2) ?? [n, ms];
  const exponent = n === nBefore || ms === Infinity ? 1 : Math.log(ms / msBefore) / Math.log(n / nBefore);
  return ms * (size / n) ** Math.max(1, exponent);
}

async function measure(
  entrant: Entrant,
  workload: Workload,
  samples: number,
  smaller: ReadonlyMap<number, Measured>,
): Promise<Measured> {
  const atLeast = expected(workload.events, smaller);
  if (atLeast <= CAP_MS) return sample(entrant, workload, samples);
  const [n, last] = [...smaller].at(-1)!;
  if (last.is === "over") return last.remark.startsWith("skipped") ? last : { ...last, remark: skipped(n, Infinity) };
  return { is: "over", remark: skipped(n, last.median), atLeast: Infinity };
}

const skipped = (n: number, ms: number): string => `skipped: ${n.toLocaleString("en-US")} took ${seconds(ms)}`;

function versus(ms: number, oursMs: number): string {
  const times = ms / oursMs;
  return times >= 1 ? `${shown(times)} × slower` : `${shown(1 / times)} × faster`;
}

async function compare(context: Context, entrants: readonly Entrant[], kind: Kind, history: number): Promise<void> {
  const { quick, samples, figures } = context;
  const [, what] = KINDS.find(([it]) => it === kind)!;
  const group = `runners: ${what}, ${history === 0 ? "no history" : `after ${history.toLocaleString("en-US")} messages`}`;
  const results = entrants.map((entrant) => ({ entrant, bySize: new Map<number, Measured>() }));
  const [first] = results;
  const sizes = sizesOf(kind, quick);
  for (const events of sizes) {
    for (const { entrant, bySize } of results) {
      const result = await measure(entrant, { kind, events, history }, samples, bySize);
      bySize.set(events, result);
      const name = `${events.toLocaleString("en-US")} events, ${entrant.name}`;
      if (result.is === "over") {
        figures.push(figure(group, name, "ms", [], result.remark));
        continue;
      }
      const oursToo = entrant === first?.entrant ? undefined : first?.bySize.get(events);
      const beside = [
        `${shown(perSecond(events, result.median))} events/s`,
        ...(oursToo?.is === "measured" ? [`${versus(result.median, oursToo.median)} than ours in memory`] : []),
        ...(result.values.length < samples ? ["1 sample"] : []),
      ];
      figures.push(figure(group, name, "ms", result.values, beside.join(", ")));
    }
  }
  const [from, to] = sizes.slice(-2) as [number, number];
  for (const { entrant, bySize } of results) {
    const [low, high] = [bySize.get(from), bySize.get(to)];
    const name = `growth from ${from.toLocaleString("en-US")} to ${to.toLocaleString("en-US")}, ${entrant.name}`;
    if (low?.is === "measured" && high?.is === "measured") {
      figures.push(figure(group, name, "times", [high.median / low.median], "10 is linear"));
    } else if (low?.is === "measured" && high?.is === "over" && !high.remark.startsWith("skipped")) {
      figures.push(figure(group, name, "times", [], `more than ${shown(CAP_MS / low.median)}; 10 is linear`));
    }
  }
}

/** Whole runs, from `run()` to the completion of its Observable. */
export async function runners(context: Context): Promise<void> {
  const { lab, peer, quick, show, note } = context;
  const other: readonly [NodeContestant, string] =
    peer === undefined
      ? ["client", "@ag-ui/client's own pipeline without a runner (Node)"]
      : ["copilotkit", `CopilotKit ${peer.version} in memory (Node)`];
  if (peer === undefined) note("CopilotKit's runtime could not be installed: the default apply stage stands in for it");
  const warmUp = async (runs: Remote<NodeRuns>): Promise<void> => {
    for (const [kind] of KINDS) {
      await runs.run("memory", { kind, events: 5_000, history: 0 });
      await runs.run(other[0], { kind, events: 200, history: 0 });
    }
  };
  const node = await startNode<NodeRuns>("child", peer === undefined ? [] : [peer.url], warmUp);
  const inNode = node.calls(CAP_MS);
  const inWorker = await lab.runs();
  const entrants: readonly Entrant[] = [
    { name: "ours in memory (Node)", run: (workload) => inNode.run("memory", workload) },
    { name: other[1], run: (workload) => inNode.run(other[0], workload) },
    { name: "ours on IndexedDB (SharedWorker)", run: (workload) => inWorker.run("indexeddb", workload) },
  ];
  try {
    for (const [kind] of KINDS) {
      for (const history of quick ? [0] : [0, 1_000]) {
        await compare(context, entrants, kind, history);
        show();
      }
    }
  } finally {
    await node.close();
    await lab.closeTabs();
  }
}
