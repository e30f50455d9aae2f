import type { TestProject } from "vitest/node";

/** Says what the random cases grow from, so that a run of the tests can be repeated. */
export default function setup({ config }: TestProject): void {
  const { propertySeed, propertyFactor } = config.provide;
  console.log(`random cases: PROPERTY_SEED=${propertySeed} PROPERTY_FACTOR=${propertyFactor}`);
}
