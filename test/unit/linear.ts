import { expect } from "vitest";

/** CPU time of this process, in ms: what else the machine does is not in it. */
function cpuOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Of several, the least: the others were hindered by a compiler or a garbage collection. */
const least = (times: number, measure: () => number): number => Math.min(...Array.from({ length: times }, measure));

/** So often is work repeated that its CPU time can be measured: with its share of garbage collections. */
function share(work: () => void): number {
  for (let times = 1; ; times *= 2) {
    const all = cpuOf(() => {
      for (let n = 0; n < times; n++) work();
    });
    if (all >= 20) return all / times;
  }
}

/**
 * Work whose cost grows with `n` as `n` does (L17): eight times as much of it takes about eight times as long, and less
 * than 32 times with all that a larger heap costs. Where the cost grows with the square it is 64 times.
 *
 * @param n so many that the cost is not all in the first ones
 */
export function expectLinear(n: number, prepare: (n: number) => () => void): void {
  const [small, large] = [prepare(n), prepare(8 * n)];
  small();
  const one = share(small);
  expect(least(3, () => cpuOf(large))).toBeLessThan(32 * one);
}
