import { expect, inject, test } from "vitest";
import { chaos } from "./chaos/chaos.js";

const engine = inject("engine");
/** In one browser: the next ones begin with an empty log. */
const BATCH = 10;
const ROUNDS = Math.ceil(5 * inject("propertyFactor"));

test(
  "messages, multi-step answers and tools under random faults: nothing typed is lost, no payment is made twice, every answer ends (L1, L2, L3, L5, L8, L9, L13; issue 16)",
  async () => {
    const first = inject("propertySeed");
    for (let done = 0; done < ROUNDS; done += BATCH) {
      const seed = first + done;
      const rounds = Math.min(BATCH, ROUNDS - done);
      console.log(`PROPERTY_SEED=${seed}, ${rounds} rounds of chaos in ${engine}`);
      const report = await chaos({ engine, origin: inject("pages"), seed, rounds, log: console.log });
      console.log(JSON.stringify(report));
      expect(report.found, `PROPERTY_SEED=${seed}`).toEqual([]);
    }
  },
  60_000 + 90_000 * ROUNDS,
);
