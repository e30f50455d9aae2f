import { median } from "./beside.js";
import type { Context } from "./context.js";
import { figure, repeat } from "./figures.js";
import type { Counting, Place } from "./node/counting.js";
import { startNode } from "./node/process.js";

const CAP_MS = 60_000;
/** Enough for the median to be that of deltas that nothing else came between. */
const DELTAS = 100;

const PLACES: readonly (readonly [Place, string])[] = [
  ["runner", "the runner alone"],
  ["tab", "a tab that runs"],
  ["follower", "a tab that follows and runs"],
  ["other", "a tab that follows a run of its host"],
];

const AGENTS = [
  ["class", "a class that emits"],
  ["function", "a function that awaits each"],
] as const;

/** What the code does, whatever the machine: host and tabs in one process of Node, IndexedDB in memory. */
export async function counts({ samples, figures }: Context): Promise<void> {
  const node = await startNode<Counting>("counting", []);
  const calls = node.calls(CAP_MS);
  const row = (group: string, name: string, values: readonly number[], beside?: string): void =>
    void figures.push(figure(`counts: ${group}`, name, "count", values, beside));
  try {
    for (const [told, kind] of AGENTS) {
      for (const [place, where] of PLACES) {
        const runs = await repeat(samples, () => calls.perDelta(place, told, DELTAS));
        const of = (what: keyof (typeof runs)[number][number]): number[] =>
          runs.map((made) => median(made.map((it) => it[what])));
        const group = `one delta at a time, from ${kind}`;
        row(group, `promises, ${where}`, of("promises"), told === "function" ? "its own included" : undefined);
        row(group, `transactions, ${where}`, of("transactions"));
        if (place !== "runner") row(group, `chunks posted, ${where}`, of("chunks"));
      }
    }
    for (const [name, count] of [
      ["a tab attaches to a thread of 10 runs, new host → messages", () => calls.attach("new")],
      ["a tab attaches to a thread of 10 runs, host knows it → messages", () => calls.attach("known")],
      ["runAgent() → first event, new thread", () => calls.start("new")],
      ["runAgent() → first event, known thread", () => calls.start("known")],
    ] as const) {
      row("transactions", name, await repeat(samples, count));
    }
  } finally {
    await node.close();
  }
}
