import { TAB_COUNTS, tabs } from "./beside.js";
import type { Context } from "./context.js";
import { figure, perSecond, repeat } from "./figures.js";

/** What the browser itself takes. */
const RAW = "baselines, a SharedWorker without the runtime";

const ports = (count: number): string => `${count} port${count > 1 ? "s" : ""}`;
export const ONE_BY_ONE = (count: number): string => `one put and one awaited callback per event, ${tabs(count)}`;
export const RECORD = (size: number): string => `record of ${size} events per relaxed transaction`;
export const PACKED_RECORD = "record of 1,000 deltas, packed, per relaxed transaction";
export const PACKED_POST = (count: number): string => `1,000 deltas, packed, per message to ${ports(count)}`;
export const CALL = "comlink call, there and back";
export const SWAP = "compare and swap, strict transaction";
export const LOCK = "Web Lock taken and let go";

export async function streamBaselines({ lab, quick, samples, figures }: Context): Promise<void> {
  const raw = await lab.raw();
  for (let i = 1; i < Math.max(...TAB_COUNTS); i++) await lab.raw();
  const row = async (name: string, count: number, work: () => Promise<number>, facts?: string): Promise<void> => {
    const values = await repeat(samples, async () => perSecond(count, await work()));
    figures.push(figure(`stream: ${RAW}`, name, "events/s", values, facts && `measured earlier: ${facts}`));
  };
  for (const to of TAB_COUNTS) {
    const count = quick ? 500 : 2_000;
    await row(ONE_BY_ONE(to), count, () => raw.perEvent(count, to));
  }
  const records = quick ? 10_000 : 40_000;
  for (const size of [100, 1_000]) {
    await row(RECORD(size), records, () => raw.records(records, size), size === 100 ? "100,000" : "440,000");
  }
  const packed = quick ? 50_000 : 200_000;
  await row(PACKED_RECORD, packed, () => raw.packedRecords(packed));
  for (const to of TAB_COUNTS) {
    const facts: Readonly<Record<number, string>> = {
      1: { 16: "261,000", 64: "384,000", 256: "435,000" },
      4: { 16: "72,000" },
      16: { 16: "16,000" },
    }[to];
    for (const size of [16, 64, 256]) {
      const count = quick || to === 16 ? 16_384 : 65_536;
      const name = `${size} events per message to ${ports(to)}`;
      await row(name, count, () => raw.posts(count, size, to), facts[size]);
    }
    await row(PACKED_POST(to), packed, () => raw.packedPosts(packed, to));
  }
  await lab.closeTabs();
}

export async function startBaselines({ lab, quick, figures }: Context): Promise<void> {
  const raw = await lab.raw();
  const count = quick ? 50 : 200;
  for (const [name, work] of [
    [CALL, () => raw.calls(count)],
    [SWAP, () => raw.swaps(count)],
    [LOCK, () => raw.locks(count)],
  ] as const) {
    await work();
    figures.push(figure(`run-start: ${RAW}`, name, "ms", await work()));
  }
  await lab.closeTabs();
}
