import { mkdir, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { dirname } from "node:path";
import type { Context } from "./context.js";
import { printFigures, type Figure } from "./figures.js";
import { GROUPS } from "./groups.js";
import { keepFigures, readKept } from "./keeping.js";
import { comparison } from "./kept.js";
import { openLab } from "./lab.js";

export const groupNames = Object.keys(GROUPS);

export interface BenchOptions {
  /** Names of groups; none means all. */
  readonly only: readonly string[];
  readonly quick: boolean;
  /** The figures become the kept ones, group by group. */
  readonly keep: boolean;
  readonly samples: number;
  readonly peer?: Context["peer"];
  /** Where the figures go. */
  readonly json: string;
}

const load = (): string => loadavg()[0]!.toFixed(1);

const majorOf = (version: string): string => version.split(".")[0]!;

export async function bench({ only, quick, keep, samples, peer, json }: BenchOptions): Promise<void> {
  const lab = await openLab();
  try {
    const probe = await lab.tab({ dbName: "bench-machine", host: "a", probe: false });
    const { cores, browser } = await probe.machine();
    await lab.closeTabs();
    const machine = { cores, cpu: cpus()[0]?.model.trim() ?? "", browser, node: process.version };
    console.log(`${cores} cores (${machine.cpu}), Chromium ${browser}, headless; load ${load()} before`);
    const measured = {
      date: new Date().toISOString().slice(0, 10),
      machine: `${cores} cores, Chromium ${majorOf(browser)}, Node ${majorOf(process.versions.node)}`,
    };
    const compared = comparison(await readKept());
    const figures: Figure[] = [];
    const notes: string[] = [];
    let printed = 0;
    const show = (): void => {
      printFigures(figures.slice(printed), compared);
      printed = figures.length;
    };
    const loads = [load()];
    for (const [name, group] of Object.entries(GROUPS)) {
      if (only.length > 0 && !only.includes(name)) continue;
      const before = figures.length;
      const note = (line: string): void => void notes.push(line);
      await group({ lab, quick, samples, figures, show, note, ...(peer && { peer }) });
      show();
      if (keep) await keepFigures(figures.slice(before), measured, groupNames);
      loads.push(load());
    }
    console.log(`\nmedian of ${samples} after a warm-up where there is no p99; load ${loads.join(", ")}`);
    for (const note of notes) console.log(note);
    await mkdir(dirname(json), { recursive: true });
    const result = { at: new Date().toISOString(), machine, loads, quick, samples, notes, figures };
    await writeFile(json, `${JSON.stringify(result, null, 2)}\n`);
    console.log(`figures: ${json}`);
  } finally {
    await lab.close();
  }
}
