import type { Findings } from "./check.js";
import type { SoakReport } from "./soak.js";

const MEANINGS: Readonly<Record<keyof Findings | "wedged", string>> = {
  missing: "seen or executed, and not in the log",
  gaps: "gaps",
  repeats: "repeats",
  invalid: "logs that are no AG-UI sequence, or end otherwise than their run",
  twice: "runs executed twice",
  overlaps: "executions that overlap in a thread",
  differing: "tabs that differ, from one another or from the log",
  wedged: "wedged threads, hanging calls",
};

/** How many of a kind's findings are told in words. */
const TOLD = 5;

const line = (what: string, count: number): string => `${String(count).padStart(8)}  ${what}`;
const counted = (counts: Readonly<Record<string, number>>): string[] =>
  Object.entries(counts).map(([what, count]) => line(what, count));
const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((total, count) => total + count, 0);

/** The report for a person. */
export function tableOf({
  seed,
  engine,
  seconds,
  kills,
  runs,
  outcomes,
  seen,
  executions,
  storageLosses,
  findings,
}: SoakReport): string {
  const found = Object.entries(findings) as [keyof typeof MEANINGS, string[]][];
  return [
    `\n${engine}, seed ${seed}, ${Math.round(seconds)} s`,
    line("kills", sum(kills)),
    ...counted(kills),
    line("runs in the log", sum(runs)),
    ...counted(runs),
    line("executions", executions),
    line("calls of runAgent that were answered", sum(outcomes)),
    ...counted(outcomes),
    line("pieces seen by tabs", seen),
    line("times that the browser deleted its own damaged storage", storageLosses),
    "",
    ...found.flatMap(([kind, all]) => [
      line(MEANINGS[kind], all.length),
      ...all.slice(0, TOLD).map((sentence) => `            ${sentence}`),
    ]),
  ].join("\n");
}
