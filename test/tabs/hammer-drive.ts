import type { LabTab } from "./driver/scripted.js";
import { BUSY, faultsOf } from "./hammer-check.js";
import type { HostTabs } from "./hammer-hosts.js";
import type { Attempt, Log } from "./pages/hammer.js";
import type { Shown } from "./soak/check.js";

/** How long a slice of hammering is, in ms; all comes to rest between two. */
export const SLICE_MS = 6_000;
/** Slices beyond those that were asked for, at most. */
const MORE_SLICES = 50;

/** A tab on each host, connected. */
export async function openAll(tabs: HostTabs, hosts: readonly string[]): Promise<LabTab[]> {
  const all: LabTab[] = [];
  for (const host of hosts) {
    const tab = await tabs.open(host);
    await tab.tab.waitFor(() => "hammer" in window && window.lab.status.is === "connected");
    all.push(tab);
  }
  return all;
}

/**
 * A tab of each host runs, stops and follows the same threads at random. Everything that must not be is a fault: each
 * thread must take a run of each host at the end, too.
 *
 * @returns the faults, a sentence each
 */
export async function hammer(
  tabs: HostTabs,
  hosts: readonly string[],
  { seed, threads, slices }: { readonly seed: number; readonly threads: readonly string[]; readonly slices: number },
): Promise<string[]> {
  const all = await openAll(tabs, hosts);
  for (const { tab } of all) await tab.evaluate((ids) => window.hammer.follow(ids), threads);
  const [first] = all;
  if (first === undefined) throw new Error("there must be a host");
  /** What has come of it so far. */
  const outcome = async () => {
    const attempts: Attempt[] = [];
    for (const { tab } of all) attempts.push(...(await tab.evaluate(() => window.hammer.attempts)));
    const log = await first.tab.evaluate((dbName) => window.hammer.log(dbName), tabs.dbName);
    const refused = attempts.filter(({ outcome: it }) => it === BUSY).length;
    const stopped = log.runs.filter(({ status }) => status === "stopped").length;
    return { attempts, log, refused, stopped, isContest: refused > 0 && stopped > 0 };
  };
  // On a slow machine it takes longer until hosts have come into each other's way.
  for (let slice = 0; slice < slices || (slice < slices + MORE_SLICES && !(await outcome()).isContest); slice++) {
    await strike(all, seed + slice * all.length);
  }

  const faults: string[] = [];
  for (const threadId of threads) {
    for (const [index, tab] of all.entries()) {
      const last = await tab.runUnseen("noted", threadId, { n: 2 });
      if (!last.ok) faults.push(`${threadId} takes no run of ${hosts[index]}: ${last.message}`);
    }
  }

  const { attempts, log, refused, stopped, isContest } = await outcome();
  const shown = await shownBy(all, hosts, log);
  faults.push(...faultsOf({ attempts, notes: await first.notes(), log, shown }));
  faults.push(...all.flatMap(({ tab }, index) => tab.errors.map((error) => `${hosts[index]} printed ${error}`)));

  if (!isContest) faults.push(`it was no contest: ${refused} refused, ${stopped} stopped`);
  console.log(
    `hammered (PROPERTY_SEED=${seed}): ${attempts.length} runs asked for, ${refused} refused; ${log.runs.length} in the log, ${stopped} of them stopped`,
  );
  return faults;
}

/** All tabs at once; over when each attempt has its outcome. */
async function strike(all: readonly LabTab[], seed: number): Promise<void> {
  const starts = all.map(({ tab }, index) =>
    tab.evaluate((own, ms) => window.hammer.start(own, ms), seed + index, SLICE_MS),
  );
  await Promise.all(starts);
  for (const { tab } of all) await tab.waitFor(() => window.hammer.isDone());
}

/** What each tab shows in the end: what the log has, unless that does not come. */
async function shownBy(all: readonly LabTab[], hosts: readonly string[], log: Log): Promise<Shown[]> {
  const whole = log.shown.map(({ messages }) => messages.join());
  const shown: Shown[] = [];
  for (const [index, { tab }] of all.entries()) {
    const complete = (expected: string[]): boolean =>
      window.hammer.shown("").every(({ messages }, thread) => messages.join() === expected[thread]);
    await tab.waitFor(complete, whole).catch(() => undefined);
    shown.push(...(await tab.evaluate((load) => window.hammer.shown(load), hosts[index]!)));
  }
  return shown;
}
