import { setTimeout as delay } from "node:timers/promises";
import type { NatsServers } from "../setup/nats.mjs";
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
const PATIENCE_MS = 600_000;
const LOOK_MS = 50;

/** A device that nobody has used joins the space, and shows all that is there. */
async function catchUp({ lab }: Context, { wsUrls }: NatsServers, space: string, filled: Filled): Promise<CaughtUp> {
  const tab = await lab.tab(freshDevice(wsUrls, space));
  await tab.beginCatchUp(HOST, filled.expected);
  for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await delay(LOOK_MS)) {
    const caughtUp = await tab.caughtUp(HOST);
    if (caughtUp === null) continue;
    await lab.closeTabs();
    return caughtUp;
  }
  throw new Error(`a new device has not caught up with ${space}`);
}

type Rows = readonly (readonly [name: string, value: (times: CaughtUp) => number])[];

const OF_ONE: Rows = [
  ["the list is shown", ({ listed }) => listed],
  ["the opened thread is shown whole", ({ shown }) => shown],
  ["of it: from its opening", ({ shown, listed }) => shown - listed],
];
const OF_MANY: Rows = [
  ["the first threads are listed", ({ firstListed }) => firstListed],
  ["the list has them all", ({ listed }) => listed],
  ["from the opening of a thread until it is shown", ({ shown, listed }) => shown - listed],
  ["all threads have come", ({ all }) => all],
];

/** A new device joins a space in which others have worked. */
export async function newDevice(context: Context, nats: NatsServers, node: Remote<NodeDevices>): Promise<void> {
  const { quick, samples, figures, show, note } = context;
  const servers = nats.urls;
  const measure = async (what: string, space: string, filled: Filled, rows: Rows): Promise<void> => {
    const times = await repeat(samples, () => catchUp(context, nats, space, filled));
    const group = `devices: a new device, ${what} (${filled.entries.toLocaleString("en-US")} entries)`;
    for (const [name, value] of rows) figures.push(figure(group, name, "ms", times.map(value)));
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
