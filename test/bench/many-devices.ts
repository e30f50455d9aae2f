import { execFileSync } from "node:child_process";
import { startNats, type NatsServers } from "../setup/nats.mjs";
import type { Context } from "./context.js";
import { figure, perSecond } from "./figures.js";
import type { Remote } from "./lab.js";
import type { NodeDevices } from "./node/devices.js";

const PER_SPACE = 10;
const WRITERS = 16;

/** The resident memory of all servers, in KB. */
function residentOf({ pids }: NatsServers): number {
  const printed = execFileSync("ps", ["-o", "rss=", "-p", pids().join(",")], { encoding: "utf8" });
  return printed
    .trim()
    .split("\n")
    .reduce((sum, line) => sum + Number(line), 0);
}

/** Many devices of many people on a cluster of three servers. */
export async function manyDevices(context: Context, node: Remote<NodeDevices>): Promise<void> {
  const { quick, samples, figures, note } = context;
  const spaces = quick ? 10 : 100;
  // So that a p99 says something.
  const rounds = quick ? 5 : 3;
  const entriesEach = quick ? 25 : 200;
  const devices = spaces * PER_SPACE;
  const group = `devices: ${devices.toLocaleString("en-US")} devices in ${spaces} spaces, a cluster of three`;
  const nats = await startNats({ servers: 3 });
  try {
    const made = await node.openSpaces(nats.urls, spaces);
    const before = residentOf(nats);
    const joined = await node.joinAll(nats.urls, PER_SPACE);
    const perDevice = (residentOf(nats) - before) / devices;
    await node.reachInTurn();
    const inTurn: number[] = [];
    const atOnce: number[] = [];
    for (let round = 0; round < rounds; round++) {
      inTurn.push(...(await node.reachInTurn()));
      atOnce.push(...(await node.reachAtOnce()));
    }
    const rates: number[] = [];
    for (let i = 0; i < samples; i++)
      rates.push(perSecond(WRITERS * entriesEach, await node.write(WRITERS, entriesEach)));
    const reached = `an entry → read by all ${PER_SPACE} devices of its space`;
    figures.push(
      figure(group, "a new space", "ms", made),
      figure(group, "all devices connect at once and read", "ms", [joined]),
      figure(group, `${reached}, one space after the other`, "ms", inTurn),
      figure(group, `${reached}, all spaces at once`, "ms", atOnce),
      figure(group, `entries acknowledged, ${WRITERS} writers`, "events/s", rates),
      figure(group, "resident memory of the servers for each device", "KB", [perDevice]),
    );
    note(
      "devices: the many devices are natsSpace in one process of Node, over TCP; entries of 0.5 KB, each space on three servers. " +
        "Memory: that of all servers after the devices have joined, less before, where the spaces were there with a writer each",
    );
  } finally {
    await nats.stop();
  }
}
