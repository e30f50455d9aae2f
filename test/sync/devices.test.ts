import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { systemClock, type Clock } from "../../src/platform/clock.js";
import { REST_MS } from "../../src/sync/compacting-threads.js";
import { Encryption } from "../../src/storage/encryption/encryption.js";
import { fastKey } from "../unit/encryption/fast-key.js";
import { agentOf, counter, freshDb, user } from "../unit/runner/kit.js";
import { deviceOn, inStep, say, shown, tree, type DeviceOn } from "../unit/sync/kit.js";
import { encodePart, PART_HEADER } from "../../src/sync/nats/parts.js";
import type { Space } from "../../src/sync/space.js";
import { startNats, type NatsServers } from "../setup/nats.mjs";
import { canRemove, eventually, freshName, isInFiles, managerOf, openSpace, streamOf } from "./kit.js";

/*
 * Devices over real servers. What the rules come to is tested over a space in memory; here servers are slow, and die.
 */

function join(
  servers: NatsServers,
  space: string,
  name: string,
  replicas: number,
  options: Parameters<typeof deviceOn>[2] = {},
): DeviceOn<Space> {
  const made = deviceOn(openSpace(servers, { space, replicas }), name, options);
  onTestFinished(made.close);
  return made;
}

/** Threads are at rest soon. */
const restless: Clock = {
  ...systemClock,
  after: (ms, signal) => systemClock.after(ms >= REST_MS && ms <= 2 * REST_MS ? 200 : ms, signal),
};

const encrypted = () => ({ encryption: new Encryption({ key: fastKey }) });

async function allTheSame(devices: readonly DeviceOn<Space>[], threads: readonly string[]): Promise<void> {
  await eventually(async () => {
    for (const threadId of threads) {
      const trees = await Promise.all(devices.map((one) => tree(one, threadId)));
      for (const other of trees) expect(other).toEqual(trees[0]);
      expect(JSON.stringify(trees[0])).not.toContain("running");
      const all = await Promise.all(devices.map((one) => shown(one, threadId)));
      for (const other of all) expect(other).toEqual(all[0]);
    }
  });
}

describe.each([
  { of: "one server", count: 1 as const },
  { of: "a cluster of three", count: 3 as const },
])("devices on $of", ({ count }) => {
  let servers: NatsServers;
  beforeAll(async () => {
    servers = await startNats({ servers: count });
  });
  afterAll(() => servers.stop());

  test("a run is on the other device, the same in every event", async () => {
    const space = freshName();
    const [phone, laptop] = [join(servers, space, "Phone", count), join(servers, space, "Laptop", count)];
    await inStep(phone, laptop);
    await say(phone, "t", "r1", agentOf(counter(200)));
    await say(laptop, "t2", "r2", agentOf(counter(200)));
    await allTheSame([phone, laptop], ["t", "t2"]);
    expect(Object.keys(await tree(phone, "t2"))).toEqual(["r2"]);
  });

  test("a device is in step where the log ends with what is no entry, and says more", async () => {
    const space = freshName();
    const phone = join(servers, space, "Phone", count);
    const dbName = freshDb();
    const before = join(servers, space, "Laptop", count, { dbName });
    await inStep(phone, before);
    await say(phone, "t", "r1", agentOf(counter(5)));
    await allTheSame([phone, before], ["t"]);
    // It reads on behind the entries it has: a new device would begin at the end of the list.
    await before.close();
    const manager = await managerOf(servers);
    const { subject, seq } = (await manager.streams.getMessage(streamOf(space), {
      last_by_subj: `agui.${space}.t.*`,
    }))!;
    const nc = await connect({ servers: [...servers.urls] });
    onTestFinished(() => nc.close());
    // Of two that were stored behind one entry in a cluster, the second; and a part of one that was never completed.
    const part = count === 1 ? { number: 1, of: 2, base: seq, key: "x" } : { number: 1, of: 1, base: 1, key: "x" };
    const header = headers();
    header.set(PART_HEADER, encodePart(part));
    await jetstream(nc).publish(subject, "", { headers: header });
    const laptop = join(servers, space, "Laptop", count, { dbName });
    await inStep(laptop);
    await say(laptop, "t2", "r2", agentOf(counter(5)));
    await allTheSame([phone, laptop], ["t", "t2"]);
    await say(phone, "t", "r3", agentOf(counter(5)));
    await allTheSame([phone, laptop], ["t", "t2"]);
  });

  test("with encryption, what one device says is on the other, and not in the files of the servers", async () => {
    const talk = async (isEncrypted: boolean, planted: string): Promise<void> => {
      const space = freshName();
      const [phone, laptop] = ["Phone", "Laptop"].map((name) =>
        join(servers, space, `${name} ${planted}`, count, isEncrypted ? encrypted() : {}),
      ) as [DeviceOn<Space>, DeviceOn<Space>];
      await inStep(phone, laptop);
      // In one part, and in several.
      await say(phone, `t ${planted}`, "r1", agentOf(counter(200)), [user(planted)]);
      await allTheSame([phone, laptop], [`t ${planted}`]);
      await say(laptop, `t ${planted}`, "r2", agentOf(counter(1)), [user(planted.padEnd(2_000_000, "."))]);
      await allTheSame([phone, laptop], [`t ${planted}`]);
      expect(Object.keys(await tree(phone, `t ${planted}`))).toEqual(["r1", "r2"]);
      await phone.runner.updateThread(`t ${planted}`, { title: planted });
      await eventually(async () =>
        expect(await laptop.runner.getThread(`t ${planted}`)).toMatchObject({ title: planted }),
      );
    };
    await talk(false, "PLANTED-plain");
    expect(isInFiles(servers.folder, "PLANTED-plain")).toBe(true);
    await talk(true, "PLANTED-sealed");
    expect(isInFiles(servers.folder, "PLANTED-sealed")).toBe(false);
  });

  test.each([
    ["plain", () => ({})],
    ["encrypted", encrypted],
  ])(
    "servers are killed while three devices run: nothing is lost or doubled, no thread is stuck (%s)",
    async (_, its) => {
      const space = freshName();
      const joining = { clock: restless, compactFrom: 8 };
      const devices = ["A", "B", "C"].map((name, n) =>
        join(servers, space, name, count, { ...its(), ...(n > 0 && joining) }),
      );
      await inStep(...devices);
      const threads = ["t0", "t1", "t2"];
      const ended: string[] = [];
      const work = devices.map(async (one, n) => {
        for (let round = 0; round < 8; round++) {
          const threadId = threads[(n + round) % threads.length]!;
          const runId = `${one.name}${round}`;
          // Whoever comes second is refused.
          const run = Promise.resolve().then(() => say(one, threadId, runId, agentOf(counter(20))));
          await run.then(
            () => ended.push(`${threadId}/${runId}`),
            () => undefined,
          );
        }
      });
      await servers.kill(0);
      await servers.restart(0);
      await Promise.all(work);
      await inStep(...devices);
      await allTheSame(devices, threads);
      const trees = await Promise.all(
        threads.map(async (threadId) => [threadId, await tree(devices[0]!, threadId)] as const),
      );
      const there = trees.flatMap(([threadId, runs]) => Object.keys(runs).map((runId) => `${threadId}/${runId}`));
      expect(there.toSorted()).toEqual(ended.toSorted());
      await Promise.all(threads.map((threadId) => say(devices[1]!, threadId, "last", agentOf(counter(2)))));
      await allTheSame(devices, threads);
      // Their entries become few, where the servers can do it, and say the same to a device that is new.
      const manager = await managerOf(servers);
      if (await canRemove(servers)) {
        await eventually(async () =>
          expect((await manager.streams.info(streamOf(space))).state.messages).toBeLessThan(threads.length * 12),
        );
      }
      const fresh = join(servers, space, "New", count, its());
      await inStep(fresh);
      await allTheSame([...devices, fresh], threads);
    },
  );
});
