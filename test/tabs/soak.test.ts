import { expect, inject, test } from "vitest";
import { soak } from "./soak/soak.js";
import { tableOf } from "./soak/table.js";

const engine = inject("engine");
/** A slice of `npm run soak`, in which `--seed` repeats it. */
const KILLS = engine === "chromium" ? 8 : 4;

test("after random kills nothing seen is lost, nothing comes twice, no thread is wedged (L2, L3, L5, L7, L8, L9, L13)", async () => {
  const seed = Math.trunc(Math.random() * 2 ** 31);
  const report = await soak({ engine, origin: inject("pages"), seed, kills: KILLS, limitMs: 35_000 });
  console.log(tableOf(report));
  const found = Object.values(report.findings).flat();
  expect(found, `npm run soak -- --engine ${engine} --seed ${seed} --kills ${KILLS}`).toEqual([]);
});
