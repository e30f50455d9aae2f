import { afterAll, beforeAll, describe, inject, test } from "vitest";
import { CONTRACT_CASES } from "./contract-cases.js";
import { ContractBench, PATIENCE_MS } from "./contract-bench.js";
import type { WayIn } from "./way-in.js";

/** A case waits for several things, one after the other. */
const WAITS_PER_CASE = 3;

/** Of a way that differs from another only in what carries the request, the gate tries so many cases, spread over all. */
const SPREAD = 60;

export interface ContractOptions {
  /** The gate tries every case, too. One way is enough for that. */
  readonly whole?: boolean;
  /** The way has one endpoint for everything. */
  readonly single?: boolean;
  /** Cases that the runtime is never asked, each with the reason. */
  readonly skip?: Readonly<Record<string, string>>;
}

/**
 * Describes a way into a runtime: one test for each case of the contract that it can be asked for.
 *
 * @param open called once: the cases are tried one after the other on one runtime
 * @throws Error for a skip of an unknown case
 */
export function describeContract(
  name: string,
  open: () => Promise<WayIn>,
  { single = false, skip = {}, whole = false }: ContractOptions = {},
): void {
  const names = new Set(CONTRACT_CASES.map((one) => one.name));
  if (names.size < CONTRACT_CASES.length) throw new Error("Two cases have one name");
  for (const skipped of Object.keys(skip)) {
    if (!names.has(skipped)) throw new Error(`skip names "${skipped}", which is no case`);
  }
  describe(name, () => {
    let way: WayIn;
    beforeAll(async () => {
      way = await open();
    });
    afterAll(() => way?.close());
    const possible = CONTRACT_CASES.filter(({ needs }) => !(single && needs === "routes"));
    const step = whole || inject("propertyFactor") >= 1 ? 1 : Math.ceil(possible.length / SPREAD);
    for (const { name: title, check } of possible.filter((_, at) => at % step === 0)) {
      const reason = skip[title];
      if (reason === undefined) test(title, () => check(new ContractBench(way)), WAITS_PER_CASE * PATIENCE_MS);
      else test.skip(`${title} (skipped: ${reason})`, () => undefined);
    }
  });
}
