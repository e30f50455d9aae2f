import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AxeResults } from "axe-core";
import type { Tab } from "./browser.js";
import { ROOT } from "./server.js";

/**
 * What axe finds in the page, as sentences.
 *
 * @param impacts of what is reported. Default serious and critical
 */
export async function violations(tab: Tab, impacts: readonly string[] = ["serious", "critical"]): Promise<string[]> {
  const axe = readFileSync(join(ROOT, "node_modules/axe-core/axe.min.js"), "utf8");
  const source = `async () => { ${axe}; return axe.run(document); }`;
  const { passes, violations: found } = (await tab.evaluateSource(source)) as AxeResults;
  if (passes.length <= 10) throw new Error(`axe found only ${passes.length} rules that the page keeps`);
  return found
    .filter(({ impact }) => impacts.includes(impact ?? ""))
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ target, failureSummary }) => `${target.join(" ")} ${failureSummary}`).join("; ")}`,
    );
}
