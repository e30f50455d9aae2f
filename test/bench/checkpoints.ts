import type { Context } from "./context.js";
import { figure, shown, type Figure } from "./figures.js";
import type { Remote } from "./lab.js";
import type { CheckpointsBench } from "./pages/checkpoints.js";
import type { Kind } from "./pages/checkpoints.worker.js";

type Page = Remote<CheckpointsBench>;

const NAMES: readonly (readonly [Kind, string])[] = [
  ["indexeddb", "IndexedDBCheckpointStore"],
  ["memory", "InMemoryCheckpointStore"],
  ["scanning-indexeddb", "scanning, IndexedDB"],
  ["scanning-memory", "scanning, in memory (AgentOS)"],
];

const QUERIES = ["latest", "load", "list", "list of a run"] as const;
const SAID = {
  latest: "latest",
  load: "load(node)",
  list: "list, limit 20",
  "list of a run": "list of a run, limit 20",
};

const isScanning = (kind: Kind): boolean => kind.startsWith("scanning");
const thousands = (count: number): string => count.toLocaleString("en-US");

/** How many put in by one call: a page's must end within its deadline. */
const FILLED_AT_ONCE = 10_000;

async function fill(page: Page, name: string, kind: Kind, from: number, to: number, bytes: number): Promise<void> {
  for (let at = from; at < to; at += FILLED_AT_ONCE)
    await page.fill(name, kind, at, Math.min(to, at + FILLED_AT_ONCE), bytes);
}

/** What queries cost in a store of ever more checkpoints of 1 KB. */
async function queries({ quick, figures, show }: Context, page: Page): Promise<void> {
  const sizes = quick ? [100, 10_000] : [100, 10_000, 100_000];
  for (const [kind, called] of NAMES) {
    const group = `checkpoints: ${called}`;
    const rows = new Map<string, Figure[]>();
    let filled = 0;
    for (const size of sizes) {
      await fill(page, kind, kind, filled, size, 1_000);
      filled = size;
      // One that looks at 100,000 takes seconds.
      const slow = isScanning(kind) && size >= 10_000;
      for (const query of QUERIES) {
        const values = await page.query(kind, query, size, slow ? 3 : 30, slow ? 1 : 10);
        const row = figure(group, `${SAID[query]}, ${thousands(size)} checkpoints`, "ms", values);
        rows.set(query, [...(rows.get(query) ?? []), row]);
      }
    }
    for (const [query, of] of rows) {
      figures.push(...of);
      const grown = of.at(-1)!.median / of[0]!.median;
      const growth = `${query}, growth to ${thousands(sizes.at(-1)!)}`;
      // What takes less than the clock's step does not grow in it.
      if (of[0]!.median > 0) figures.push(figure(group, growth, "times", [grown], "1 is flat"));
    }
    show();
  }
}

/** What it costs to list 50 checkpoints whose states are small, and large. */
async function lists({ figures, show }: Context, page: Page): Promise<void> {
  const count = 50;
  for (const [kind, called] of NAMES) {
    const medians: number[] = [];
    for (const [bytes, size] of [
      [1_000, "1 KB"],
      [1_000_000, "1 MB"],
    ] as const) {
      const name = `${kind}-${bytes}`;
      await fill(page, name, kind, 0, count, bytes);
      const slow = isScanning(kind);
      const values = await page.query(name, "list all", count, slow ? 3 : 30, slow ? 1 : 10);
      const beside = medians[0] === undefined ? undefined : `${shown(medians[0])} ms over 1 KB`;
      const row = figure(`checkpoints: list of ${count}`, `${called}, states of ${size}`, "ms", values, beside);
      medians.push(row.median);
      figures.push(row);
    }
  }
  show();
}

async function saves({ quick, figures, show }: Context, page: Page): Promise<void> {
  for (const [bytes, size, times] of [
    [1_000, "1 KB", 50],
    [100_000, "100 KB", 30],
    [5_000_000, "5 MB", quick ? 5 : 10],
  ] as const) {
    let before: Figure | undefined;
    for (const kind of ["scanning-indexeddb", "indexeddb", "memory"] as const) {
      const name = `saves-${kind}`;
      await page.fill(name, kind, 0, 1, 1_000);
      await page.save(name, bytes, 2);
      const beside =
        kind === "indexeddb" && before !== undefined ? `one strict put: ${shown(before.median)} ms` : undefined;
      const called = kind === "scanning-indexeddb" ? "one strict put, no index" : NAMES.find(([of]) => of === kind)![1];
      before = figure("checkpoints: save", `${size}, ${called}`, "ms", await page.save(name, bytes, times), beside);
      figures.push(before);
    }
  }
  show();
}

/** What checkpoint stores cost, beside one that looks through everything. */
export async function checkpoints(context: Context): Promise<void> {
  const page = await context.lab.checkpoints();
  await saves(context, page);
  await lists(context, page);
  await queries(context, page);
  context.note(
    "checkpoints: in a SharedWorker; 100 of each run, at 10 nodes; a query is the mean of 10 where it is short",
  );
  await context.lab.closeTabs();
}
