import type { Context } from "./context.js";
import { figure, inTurn, perSecond, shown } from "./figures.js";
import type { Kind, StoredHow } from "./pages/encryption.worker.js";

const HOW: readonly StoredHow[] = ["plain", "encrypted"];
const KINDS: readonly (readonly [Kind, string])[] = [
  ["text", "deltas of a text"],
  ["custom", "CUSTOM events"],
];

/** What encryption costs in the log, each beside the same without it. */
export async function encryption({ lab, quick, samples, figures, show, note }: Context): Promise<void> {
  const page = await lab.encryption();
  const rows = async (
    name: string,
    unit: "ms" | "events/s",
    work: (how: StoredHow) => Promise<number>,
  ): Promise<void> => {
    const values = await inTurn(samples, { plain: () => work("plain"), encrypted: () => work("encrypted") });
    let before: number | undefined;
    for (const how of HOW) {
      const beside = before === undefined ? undefined : `plain: ${shown(before)}`;
      const row = figure("encryption", `${name}, ${how}`, unit, values[how], beside);
      before = row.median;
      figures.push(row);
    }
  };
  const all = quick ? 20_000 : 100_000;
  for (const [kind, said] of KINDS) {
    await rows(`commit of 20 ${said}`, "ms", async (how) => (await page.appends(how, kind, 20, 50)) / 50);
    await rows(`chunks of 500 ${said}`, "events/s", async (how) =>
      perSecond(all, await page.appends(how, kind, 500, all / 500)),
    );
    await rows(`read of ${all.toLocaleString("en-US")} ${said}`, "ms", (how) => page.reads(how, kind, all));
  }
  await rows("end of a run of 200 messages", "ms", (how) => page.settles(how, 200));
  show();
  note("encryption: the store alone, in a SharedWorker");
  await lab.closeTabs();
}
