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

/**
 * Work whose cost grows with `n` as `n` does (L17): eight times as much of it takes about eight times as long. Where the
 * cost grows with the square it is 64 times.
 *
 * @param n so many that the cost is not all in the first ones
 */
export function expectLinear(n: number, prepare: (n: number) => () => void): void {
  const [small, large] = [prepare(n), prepare(8 * n)];
  small();
  const one = least(3, () => cpuOf(small));
  // Less than that is not measured well.
  const most = 24 * Math.max(one, 1);
  expect(least(3, () => cpuOf(large))).toBeLessThan(most);
}
