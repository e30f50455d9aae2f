import fc from "fast-check";
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** What random cases grow from; printed where a run of the tests begins. */
    propertySeed: number;
    /** Many times the usual number of random cases. */
    propertyFactor: number;
  }
}

/**
 * So many random cases, or a multiple of that on demand. `PROPERTY_SEED=… PROPERTY_FACTOR=… npm test -- unit` repeats a
 * run of the tests. What was wrong is said with the case: a summary of many suites shows no cause.
 */
export const times = (numRuns: number) => ({
  numRuns: Math.ceil(numRuns * inject("propertyFactor")),
  seed: inject("propertySeed"),
  includeErrorInReport: true,
});

/**
 * `play`s more random cases until every count is above zero. So a suite makes what it counts on having met; whether the
 * usual number of cases meets it is chance.
 */
export async function untilMet<T>(
  counts: Readonly<Record<string, number>>,
  cases: fc.Arbitrary<T>,
  play: (one: T) => Promise<void>,
): Promise<void> {
  const unmet = (): string[] => Object.keys(counts).filter((what) => counts[what] === 0);
  for (let round = 1; unmet().length > 0; round++) {
    // Thousands of cases, each different: it cannot be met any more.
    if (round > 100) throw new Error(`no case has met ${unmet().join(", ")}`);
    await fc.assert(fc.asyncProperty(cases, play), { numRuns: 50, seed: inject("propertySeed") + round });
  }
}
