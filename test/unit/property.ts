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
 * run of the tests.
 */
export const times = (numRuns: number): { readonly numRuns: number; readonly seed: number } => ({
  numRuns: Math.ceil(numRuns * inject("propertyFactor")),
  seed: inject("propertySeed"),
});
