import type { Context } from "./context.js";
import { figure, shown, type Figure } from "./figures.js";
import type { Remote } from "./lab.js";
import type { NodeRuns } from "./node/child.js";
import { startNode } from "./node/process.js";
import type { RunsApi } from "./runs/api.js";
import type { ThreadTimes } from "./runs/live-thread.js";

/** What both places have. */
type Threads = Remote<Omit<RunsApi<never>, "run">>;

const CAP_MS = 60_000;
/** Runs of one call: a page's must end within its deadline. */
const FILLED_AT_ONCE = 500;
/** A short thread does not stay short while it is measured: after so many runs comes the next one. */
const MEASURED_IN_SHORT = 5;
const SHORT = 10;

const PARTS = [
  ["start", "run() → first event"],
  ["append", "one event emitted → delivered"],
  ["settle", "agent's completion → Observable completed"],
] as const;

const none = (): ThreadTimes => ({ start: [], append: [], settle: [] });

function add(to: ThreadTimes, more: ThreadTimes): void {
  for (const [part] of PARTS) to[part].push(...more[part]);
}

async function fill(host: Threads, threadId: string, runs: number): Promise<void> {
  for (let left = runs; left > 0; left -= FILLED_AT_ONCE) await host.fill(threadId, Math.min(left, FILLED_AT_ONCE));
}

/** A thread of so many settled runs is filled by and by; the short ones are many. */
async function measureSize(
  host: Threads,
  size: number,
  runs: number,
  fresh: number,
  reads: boolean,
): Promise<{ readonly warm: ThreadTimes; readonly cold: ThreadTimes }> {
  const warm = none();
  const cold = none();
  let name = 0;
  const shortThread = async (): Promise<string> => {
    const threadId = `${SHORT} ${reads} ${name++}`;
    await fill(host, threadId, size);
    return threadId;
  };
  const longThread = `${size}`;
  const long = size > SHORT;
  // What the host has of the thread from its last run, not from a read.
  await host.warm(long ? longThread : await shortThread(), 3, reads);
  const atOnce = long ? 50 : MEASURED_IN_SHORT;
  for (let left = runs; left > 0; left -= atOnce) {
    add(warm, await host.warm(long ? longThread : await shortThread(), Math.min(left, atOnce), reads));
  }
  for (let i = 0; i < fresh; i++) add(cold, await host.cold(long ? longThread : await shortThread(), reads));
  return { warm, cold };
}

function growth(group: string, name: string, from: Figure, to: Figure): Figure {
  const p99 = from.p99 === undefined || to.p99 === undefined ? [] : [`p99 ${shown(to.p99 / from.p99)}`];
  return figure(group, name, "times", [to.median / from.median], ["1 is flat", ...p99].join(", "));
}

async function measurePlace({ quick, figures, show }: Context, place: string, host: Threads): Promise<void> {
  const sizes = quick ? [SHORT, 1_000] : [SHORT, 1_000, 10_000];
  const [runs, fresh] = quick ? [50, 3] : [200, 10];
  for (const size of sizes) if (size > SHORT) await fill(host, `${size}`, size);
  for (const reads of [false, true]) {
    const group = `threads: ${place}, an agent that ${reads ? "reads" : "does not read"} its messages`;
    const bySize = new Map<number, Awaited<ReturnType<typeof measureSize>>>();
    for (const size of sizes) bySize.set(size, await measureSize(host, size, runs, fresh, reads));
    const row = (what: string, pick: (times: { warm: ThreadTimes; cold: ThreadTimes }) => number[]): void => {
      const rows = [...bySize].map(([size, times]) =>
        figure(group, `${what}, ${size.toLocaleString("en-US")} runs`, "ms", pick(times)),
      );
      figures.push(...rows, growth(group, `${what}, growth to ${sizes.at(-1)} runs`, rows[0]!, rows.at(-1)!));
    };
    for (const [part, what] of PARTS) row(what, ({ warm }) => warm[part]);
    for (const [part, what] of PARTS) row(`first run of a fresh runner: ${what}`, ({ cold }) => cold[part]);
    show();
  }
}

/** What a run costs in a thread that has had many. */
export async function threads(context: Context): Promise<void> {
  const node = await startNode<NodeRuns>("child", []);
  try {
    await measurePlace(context, "in memory (Node)", node.calls(CAP_MS));
  } finally {
    await node.close();
  }
  await measurePlace(context, "IndexedDB (SharedWorker)", await context.lab.runs());
  context.note("threads: the clock of a SharedWorker has steps of 0.1 ms");
  await context.lab.closeTabs();
}
