import { setTimeout as delay } from "node:timers/promises";
import type { NatsServers } from "../setup/nats.mjs";
import { median, ratio } from "./beside.js";
import type { Context } from "./context.js";
import { figure, repeat } from "./figures.js";
import { freshDevice, HOST, type Remote } from "./lab.js";
import type { NodeDevices } from "./node/devices.js";
import type { Filled } from "./node/space-fill.js";
import type { CaughtUp } from "./pages/tab-devices.js";

/** A run of the long thread, and a short one. */
const LONG_EVENTS = 1_000;
const SHORT_EVENTS = 20;
/** Events of an entry while a run streams at the pace of a model. */
const STREAMED = 2;
/** A device that has not caught up by then never will, in ms. */
const PATIENCE_MS = 1_800_000;
const LOOK_MS = 50;

/** A device that nobody has used joins the space, until it has shown this. */
async function catchUp(
  { lab }: Context,
  { wsUrls }: NatsServers,
  { space, expected, upTo }: Pick<Filled, "expected"> & { readonly space: string; readonly upTo: keyof CaughtUp },
): Promise<Partial<CaughtUp>> {
  const tab = await lab.tab(freshDevice(wsUrls, space));
  await tab.beginCatchUp(HOST, expected);
  for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await delay(LOOK_MS)) {
    const caughtUp = await tab.caughtUp(HOST);
    if (caughtUp[upTo] === undefined) continue;
    await lab.closeTabs();
    return caughtUp;
  }
  throw new Error(`a new device has not caught up with ${space}`);
}

type Rows = readonly (readonly [name: string, value: (times: Partial<CaughtUp>) => number])[];

const fromOpening = (times: Partial<CaughtUp>): number => times.shown! - times.listed!;
const OF_ONE: Rows = [
  ["the list is shown", (times) => times.listed!],
  ["the opened thread is shown whole", (times) => times.shown!],
  ["of it: from its opening", fromOpening],
];
const OF_MANY: Rows = [
  ["the first threads are listed", (times) => times.firstListed!],
  ["the list has them all", (times) => times.listed!],
  ["from the opening of a thread until it is shown", fromOpening],
];

/** A new device joins a space in which others have worked. */
export async function newDevice(context: Context, nats: NatsServers, node: Remote<NodeDevices>): Promise<void> {
  const { quick, samples, figures, show, note } = context;
  const servers = nats.urls;
  const measure = async (what: string, space: string, { expected, entries }: Filled, rows: Rows): Promise<void> => {
    const group = `devices: a new device, ${what} (${entries.toLocaleString("en-US")} entries)`;
    const raw = await repeat(samples, () => node.readAll(servers, space));
    figures.push(figure(group, "natsSpace alone: connected, and all entries read", "ms", raw));
    const times = await repeat(samples, () => catchUp(context, nats, { space, expected, upTo: "shown" }));
    for (const [name, value] of rows) figures.push(figure(group, name, "ms", times.map(value)));
    if (expected.threads > 1) {
      // Once: it takes long.
      const { all } = await catchUp(context, nats, { space, expected, upTo: "all" });
      const beside = ratio(all!, median(raw), "natsSpace").join();
      figures.push(figure(group, "all threads have come", "ms", [all!], beside));
    }
    show();
  };
  const runs = quick ? 10 : 100;
  const thread = `one thread of ${(runs * LONG_EVENTS).toLocaleString("en-US")} events`;
  const fill = (space: string) => ({ servers, space, events: LONG_EVENTS });
  await measure(`${thread}, sent in whole runs`, "whole", await node.fillThread(fill("whole"), runs), OF_ONE);
  const streamed = await node.fillThread(fill("streamed"), runs, STREAMED);
  await measure(`${thread}, sent as it streamed`, "streamed", streamed, OF_ONE);
  const threads = quick ? 1_000 : 10_000;
  const many = await node.fillThreads({ servers, space: "many", events: SHORT_EVENTS }, threads);
  await measure(`${threads.toLocaleString("en-US")} threads of a run of ${SHORT_EVENTS} events`, "many", many, OF_MANY);
  note(
    "devices: a new device is timed from connectRuntime() in its first tab, so its worker's start is part of it. " +
      "The opened thread of many is the one that comes last by itself",
  );
}
