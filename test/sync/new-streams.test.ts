import { expect, inject, test } from "vitest";
import { systemClock, type Clock } from "../../src/platform/clock.js";
import {
  addSurely,
  bytes,
  counting,
  createdSpace,
  eventually,
  freshName,
  managerOf,
  openSpace,
  ownServers,
  Reader,
  streamOf,
  until,
} from "./kit.js";

// In a cluster that makes streams and takes them away; `npm run test:all` runs it, not the gate.

test("of many devices that find no stream in a cluster, one makes it", async () => {
  const servers = await ownServers({ servers: 3 });
  // What they say to one another may be late on a busy machine.
  const clock: Clock = { ...systemClock, after: (ms, signal) => systemClock.after(4 * ms, signal) };
  for (let round = 0; round < 3; round++) {
    const space = freshName();
    let made = 0;
    const connecting = counting("STREAM.CREATE", () => made++);
    const devices = Array.from({ length: 6 }, () =>
      openSpace(servers, { space, replicas: 3, connect: connecting, clock }),
    );
    await Promise.all(devices.map((device) => until(device, "online")));
    expect(made).toBe(1);
  }
});

// With 2.9.10, every second time that leads to a leader that takes nothing.
test("the leader of a stream that was made again is killed under load and starts at once: it goes on", async () => {
  const servers = await ownServers({ servers: 3 });
  const manager = await managerOf(servers);
  const space = await createdSpace(servers);
  for (let kills = 0; kills < (inject("propertyFactor") < 1 ? 1 : 4); kills++) {
    await manager.streams.delete(streamOf(space));
    const devices = Array.from({ length: 4 }, () => openSpace(servers, { space, replicas: 3 }));
    devices.forEach((device) => new Reader(device));
    let count = 0;
    const enough = new AbortController();
    const adding = devices.map(async (device, at) => {
      for (let last = 0; !enough.signal.aborted; count++) {
        const seq = await addSurely(device, `t${at}`, bytes("x"), { last, id: `${last}` });
        if (seq === undefined) throw new Error(`Nobody else writes here: ${at} after ${last}`);
        last = seq;
      }
    });
    const more = async (): Promise<void> => {
      const enoughAt = count + 20;
      await eventually(() => expect(count).toBeGreaterThan(enoughAt));
    };
    await more();
    const { cluster } = await manager.streams.info(streamOf(space));
    const leader = servers.names.indexOf(cluster?.leader ?? "");
    await servers.kill(leader);
    await servers.restart(leader);
    await more();
    enough.abort();
    await Promise.all(adding);
  }
});
