import type { Engine } from "../driver/browser.js";
import { startTestPages } from "../driver/test-pages.js";
import { soak, type SoakReport } from "./soak.js";
import { tableOf } from "./table.js";

/** The soak with a server of its own, told of on the console. */
export async function main(options: { engine: Engine; kills: number; seed: number }): Promise<SoakReport> {
  console.log(`seed ${options.seed}, ${options.kills} kills, ${options.engine}`);
  const server = await startTestPages();
  try {
    const report = await soak({ ...options, origin: server.origin, log: console.log });
    console.log(tableOf(report));
    return report;
  } finally {
    await server.close();
  }
}
