import { startNats, type NatsServers } from "../setup/nats.mjs";
import { median, ratio } from "./beside.js";
import type { Context } from "./context.js";
import { figure } from "./figures.js";
import { freshDevice, HOST, type Remote } from "./lab.js";
import { emittedToSeen } from "./latency.js";
import { manyDevices } from "./many-devices.js";
import { newDevice } from "./new-device.js";
import type { NodeDevices } from "./node/devices.js";
import { startNode } from "./node/process.js";
import { clockOffsetBy } from "./pages/stamps.js";
import type { TabBench } from "./pages/tab.js";

/** A call of the process in Node: it fills spaces, and connects many devices. */
const CAP_MS = 600_000;

const RATES = [
  { perSecond: 50, count: 200, quick: 50 },
  { perSecond: 500, count: 1_500, quick: 250 },
] as const;

/** How far the clock of one tab is from the other's, in ms. */
async function offsetBetween(one: Remote<TabBench>, other: Remote<TabBench>): Promise<number> {
  return (await clockOffsetBy(() => one.clock())) - (await clockOffsetBy(() => other.clock()));
}

/** A run on one device, seen in a tab of another one. */
async function live(context: Context, { urls, wsUrls }: NatsServers, node: Remote<NodeDevices>): Promise<void> {
  const { lab, quick, figures, note } = context;
  const group = "devices: a run of one device in a tab of another one";
  const space = "live";
  const runs = await lab.tab(freshDevice(wsUrls, space));
  const sees = await lab.tab(freshDevice(wsUrls, space));
  await Promise.all([runs.inStep(HOST), sees.inStep(HOST)]);
  const offset = await offsetBetween(runs, sees);
  const seen = async (perSecond: number, count: number): Promise<number[]> => {
    const threadId = crypto.randomUUID();
    await runs.stream(HOST, "frames", "sync", threadId, 1);
    await sees.hasRun(HOST, threadId);
    await sees.watch(HOST, threadId);
    await runs.runWatched(HOST, threadId, count, perSecond);
    return emittedToSeen(await sees.watched(threadId), count, 0);
  };
  await seen(500, 100);
  for (const { perSecond, ...counts } of RATES) {
    const count = quick ? counts.quick : counts.count;
    const raw = await node.paced({ servers: urls, space: `raw_${perSecond}`, perSecond, count });
    const all = await seen(perSecond, count);
    const beside = ratio(median(all), median(raw), "natsSpace").join();
    figures.push(
      figure(group, `natsSpace alone: added → read, ${perSecond} entries a second`, "ms", raw),
      figure(group, `emitted → visible, ${perSecond} deltas a second`, "ms", all, beside),
    );
  }
  note(
    "devices: two origins of one Chromium, each with its own SharedWorker and database, and one nats-server. " +
      `Times are those of the machine's clock; the tabs' differ by about ${offset.toFixed(1)} ms`,
  );
  note(
    "devices: natsSpace alone is `add` (compare-and-set, one entry after the other's acknowledgement) by one connection and `read` by another one, both in one process of Node",
  );
  await lab.closeTabs();
}

/** What devices in step over NATS cost. */
export async function devices(context: Context): Promise<void> {
  const process = await startNode<NodeDevices>("devices", []);
  try {
    const node = process.calls(CAP_MS);
    const nats = await startNats();
    try {
      await live(context, nats, node);
      context.show();
      await newDevice(context, nats, node);
    } finally {
      await context.lab.closeTabs();
      await nats.stop();
    }
    await manyDevices(context, node);
  } finally {
    await process.close();
  }
}
