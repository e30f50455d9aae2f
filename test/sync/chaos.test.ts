import { jetstream } from "@nats-io/jetstream";
import { connect, headers } from "@nats-io/transport-node";
import fc from "fast-check";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { systemClock, type Clock } from "../../src/platform/clock.js";
import { messageOf } from "../../src/run/errors.js";
import { Encryption } from "../../src/storage/encryption/encryption.js";
import type { Space } from "../../src/sync/space.js";
import { natsSpace } from "../../src/sync/nats/nats-space.js";
import { REST_MS } from "../../src/sync/compacting-threads.js";
import { startNats, type NatsServers } from "../setup/nats.mjs";
import { fastKey } from "../unit/encryption/fast-key.js";
import { agentOf, collect, counter, freshDb, inputOf } from "../unit/runner/kit.js";
import { deviceOn, inStep, sayNow, shown, tree, type DeviceOn } from "../unit/sync/kit.js";
import { freshName, managerOf, streamOf } from "./kit.js";
import { linkTo, type Link } from "./link.js";

/*
 * Three devices whose clocks are hours apart, on real servers, one or a cluster of three: in each round something fails while
 * they run, rename, stop and delete. When it is mended, all show the same, nothing that ended anywhere is missing, no run was
 * executed twice, and no thread is stuck.
 */

const HOUR = 3_600_000;
const DEVICES = [
  { name: "A", ahead: 0 },
  { name: "B", ahead: 5 * HOUR },
  { name: "C", ahead: -7 * HOUR },
] as const;
const THREADS = ["t0", "t1"] as const;
const ROUNDS_OF_A_PLAY = 10;

/** 500 rounds; in the gate a few. */
const factor = inject("propertyFactor");
const plays = Math.max(2, Math.round((factor < 1 ? 0 : 50) * factor));

const device = fc.nat(DEVICES.length - 1);
const thread = fc.nat(THREADS.length - 1);

const FAULTS = [
  "nothing",
  "the leader dies",
  "a follower dies",
  "no quorum",
  "a device is cut off",
  "a device is slow",
  "a device hears nothing",
  "a device dies",
  "a device restarts",
  "the servers lose all",
  "an entry is repeated",
] as const;

const round = fc.record({
  fault: fc.constantFrom(...FAULTS),
  at: device,
  does: fc.array(
    fc.record({
      at: device,
      thread,
      what: fc.constantFrom(
        ...(["run", "run", "run", "answer", "slow run", "slow run", "title", "archive", "stop", "delete"] as const),
      ),
    }),
    { minLength: 2, maxLength: 6 },
  ),
});
type Round = typeof round extends fc.Arbitrary<infer T> ? T : never;

const play = fc.record({
  isEncrypted: fc.boolean(),
  isCluster: fc.constantFrom(true, true, false),
  /** The third device is new before this round. */
  joinsAt: fc.nat(ROUNDS_OF_A_PLAY - 1),
  rounds: fc.array(round, { minLength: ROUNDS_OF_A_PLAY, maxLength: ROUNDS_OF_A_PLAY }),
});
type Play = typeof play extends fc.Arbitrary<infer T> ? T : never;

let cluster: NatsServers;
let single: NatsServers;
beforeAll(async () => {
  // One after the other: each looks for free ports, and lets go of them before its servers listen.
  cluster = await startNats({ servers: 3 });
  single = await startNats();
});
afterAll(() => Promise.all([cluster.stop(), single.stop()]));

/** A connection is tried again soon, and threads are at rest soon. */
const hasty = (ahead: number): Clock => ({
  ...systemClock,
  now: () => systemClock.now() + ahead,
  after: (ms, signal) => systemClock.after(ms >= REST_MS && ms <= 2 * REST_MS ? 300 : ms, signal),
});
const soon: Clock = { ...systemClock, after: (ms, signal) => systemClock.after(Math.min(ms, 300), signal) };

class Chaos {
  private readonly space = freshName();
  private readonly servers: NatsServers;
  private readonly names = DEVICES.map(() => freshDb());
  private readonly links: Link[][] = [];
  private readonly devices: DeviceOn<Space>[] = [];
  private readonly executed = new Map<string, number>();
  private readonly ended: { readonly threadId: string; readonly runId: string }[] = [];
  private readonly deleted = new Set<string>();
  private readonly story: string[] = [];
  private runs = 0;

  constructor(private readonly its: Play) {
    this.servers = its.isCluster ? cluster : single;
  }

  async go(): Promise<void> {
    try {
      for (const n of [0, 1]) await this.join(n);
      for (const [index, one] of this.its.rounds.entries()) {
        if (index === this.its.joinsAt) await this.join(2);
        await this.round(one);
      }
      await this.runEverywhere();
      expect([...this.executed].filter(([, count]) => count > 1)).toEqual([]);
    } catch (error) {
      const stand = await Promise.all(this.devices.map(standOf));
      const newest = await this.newest().catch(String);
      throw new Error([...this.story, ...stand, newest, messageOf(error)].join("\n"), { cause: error });
    } finally {
      for (const one of this.devices) await one.close();
    }
  }

  private async join(n: number): Promise<void> {
    this.links[n] = await Promise.all(this.servers.urls.map((url) => linkTo(url)));
    this.devices[n] = this.make(n);
    // The space is made by one: of several that do it at once each may make it another log.
    await inStep(this.devices[n]);
  }

  private make(n: number): DeviceOn<Space> {
    const { name, ahead } = DEVICES[n]!;
    const space = natsSpace({
      servers: this.links[n]!.map(({ url }) => url),
      space: this.space,
      replicas: this.servers.urls.length,
      connect,
      clock: soon,
    });
    return deviceOn<Space>(space, name, {
      dbName: this.names[n]!,
      clock: hasty(ahead),
      ...(n > 0 && { compactFrom: 12 }),
      ...(this.its.isEncrypted && { encryption: new Encryption({ key: fastKey }), spaceName: this.space }),
    });
  }

  private async round({ fault, at, does }: Round): Promise<void> {
    this.story.push(`-- ${fault} (${DEVICES[at]?.name})`);
    const n = this.devices[at] === undefined ? 0 : at;
    const going: Promise<unknown>[] = [];
    const half = Math.ceil(does.length / 2);
    for (const one of does.slice(0, half)) going.push(this.act(one));
    const mend = await this.fail(fault, n);
    for (const one of does.slice(half)) going.push(this.act(one));
    await mend();
    await Promise.all(going);
    await this.areTheSame();
  }

  /** @returns mends it */
  private async fail(fault: Round["fault"], n: number): Promise<() => Promise<unknown>> {
    const { servers } = this;
    const links = this.links[n]!;
    const nothing = async (): Promise<void> => undefined;
    const dies = async (...dead: readonly number[]): Promise<() => Promise<unknown>> => {
      await Promise.all(dead.map((one) => servers.kill(one)));
      return () => Promise.all(dead.map((one) => servers.restart(one)));
    };
    switch (fault) {
      case "nothing":
        return nothing;
      case "the leader dies":
        return dies(await this.leader());
      case "a follower dies":
        return dies(((await this.leader()) + 1) % servers.urls.length);
      case "no quorum":
        return servers.urls.length === 1 ? dies(0) : dies(0, 1);
      case "a device is cut off":
        links.forEach((link) => link.cut());
        return async () => links.forEach((link) => link.mend());
      case "a device is slow":
        links.forEach((link) => link.slow(30));
        return async () => links.forEach((link) => link.mend());
      case "a device hears nothing":
        links.forEach((link) => link.freeze());
        return async () => links.forEach((link) => link.mend());
      case "a device dies": {
        const dead = this.devices[n]!;
        dead.runner.letGo();
        this.devices[n] = this.make(n);
        await dead.close();
        return nothing;
      }
      case "a device restarts":
        await this.devices[n]!.close();
        this.devices[n] = this.make(n);
        return nothing;
      case "the servers lose all":
        await servers.wipe();
        return nothing;
      case "an entry is repeated":
        // Where nobody signs what is added, whoever may add can say anything.
        if (this.its.isEncrypted)
          await this.repeat().catch((error: unknown) => this.story.push(`not repeated: ${String(error)}`));
        return nothing;
    }
  }

  private async leader(): Promise<number> {
    const manager = await managerOf(this.servers);
    const info = await manager.streams.info(streamOf(this.space)).catch(() => undefined);
    return Math.max(0, this.servers.names.indexOf(info?.cluster?.leader ?? ""));
  }

  /** The first entry of a thread, again. */
  private async repeat(): Promise<void> {
    const manager = await managerOf(this.servers);
    const { state } = await manager.streams.info(streamOf(this.space));
    const found = await manager.streams.getMessage(streamOf(this.space), { seq: state.first_seq });
    if (found === null) return;
    const nc = await connect({ servers: [...this.servers.urls] });
    // Its message id and the entry that it was added behind would have the server refuse it.
    const copy = headers();
    for (const [name, values] of found.header)
      if (!name.startsWith("Nats-")) for (const value of values) copy.append(name, value);
    await jetstream(nc).publish(found.subject, found.data, { headers: copy });
    this.story.push("repeated");
    await nc.close();
  }

  /** The newest messages of the stream: seq, thread, and what their headers say of their place. */
  private async newest(): Promise<string> {
    const manager = await managerOf(this.servers);
    const name = streamOf(this.space);
    const { last_seq: last } = (await manager.streams.info(name)).state;
    const lines: string[] = [];
    for (let seq = Math.max(1, last - 30); seq <= last; seq++) {
      const found = await manager.streams.getMessage(name, { seq }).catch(() => null);
      const said = found === null ? [] : [...found.header].map(([key, values]) => `${key}: ${values.join()}`);
      lines.push(`${seq} ${found?.subject.slice(-8) ?? "is not there"} ${said.join(" ")}`);
    }
    return lines.join("\n");
  }

  private async act({ at, thread: of, what }: Round["does"][number]): Promise<void> {
    const one = this.devices[at];
    const threadId = THREADS[of]!;
    if (one === undefined) return;
    const said = `${one.name} ${what} ${threadId}`;
    try {
      switch (what) {
        case "run":
        case "slow run":
          await this.run(one, threadId, what === "run" ? 0 : 40);
          break;
        case "answer":
          await this.answer(one, threadId);
          break;
        case "title":
          await one.runner.updateThread(threadId, { title: `title ${++this.runs}` });
          break;
        case "archive":
          await one.runner.updateThread(threadId, { archived: ++this.runs % 2 === 0 });
          break;
        case "stop":
          await one.runner.stop({ threadId });
          break;
        case "delete":
          this.deleted.add(threadId);
          await one.runner.deleteThread(threadId);
      }
      this.story.push(said);
    } catch (error) {
      // The thread is busy, or is not there, or the device has died.
      this.story.push(`${said}: ${(error as { code?: string }).code ?? String(error)}`);
    }
  }

  private async run(one: DeviceOn<Space>, threadId: string, pauseMs: number): Promise<void> {
    const runId = `${one.name}${++this.runs}`;
    const numbers = counter(5, (n) => {
      if (n === 0) this.executed.set(runId, (this.executed.get(runId) ?? 0) + 1);
      return pauseMs === 0 ? undefined : systemClock.after(pauseMs);
    });
    await sayNow(one, threadId, runId, agentOf(numbers));
    this.ended.push({ threadId, runId });
  }

  /** As CopilotKit answers: each under the same id, that of the run that asked. */
  private async answer({ runner }: DeviceOn<Space>, threadId: string): Promise<void> {
    const runId = "asks";
    const said = `answer ${++this.runs}`;
    const count = counter(3, (n) => {
      if (n === 0) this.executed.set(said, (this.executed.get(said) ?? 0) + 1);
      return undefined;
    });
    const resume = [{ interruptId: "i", status: "resolved" as const, payload: said }];
    const input = { ...inputOf(threadId, runId, []), resume };
    await collect(runner.run({ threadId, agent: agentOf(count), input }));
    this.ended.push({ threadId, runId });
  }

  /** No thread is stuck, and what is said last is everywhere. */
  private async runEverywhere(): Promise<void> {
    for (const one of this.devices) {
      for (const threadId of THREADS) {
        await vi.waitFor(() => Promise.resolve().then(() => this.run(one, threadId, 0)), {
          timeout: 60_000,
          interval: 100,
        });
        await this.areTheSame();
      }
    }
  }

  private async areTheSame(): Promise<void> {
    const missing = (threadId: string, runs: object): unknown[] => {
      if (this.deleted.has(threadId)) return [];
      // Several have one id.
      const here = Object.keys(runs).map((name) => name.split(" ")[0]);
      const isMissing = ({ runId }: { readonly runId: string }): boolean => {
        const place = here.indexOf(runId);
        if (place >= 0) here.splice(place, 1);
        return place < 0;
      };
      return this.ended.filter((run) => run.threadId === threadId && isMissing(run));
    };
    await vi.waitFor(
      async () => {
        await inStep(...this.devices);
        for (const threadId of THREADS) {
          for (const { runner } of this.devices) expect(await runner.isRunning({ threadId })).toBe(false);
          const [first, ...others] = await Promise.all(this.devices.map((one) => stateOf(one, threadId)));
          for (const other of others) expect(other).toEqual(first);
          expect(missing(threadId, first!.tree)).toEqual([]);
        }
      },
      { timeout: 90_000, interval: 50 },
    );
  }
}

async function stateOf(one: DeviceOn<Space>, threadId: string) {
  const row = await one.runner.getThread(threadId);
  return {
    tree: await tree(one, threadId),
    shown: await shown(one, threadId),
    row: row && { title: row.title, archived: row.archived },
  };
}

async function standOf(one: DeviceOn<Space>): Promise<string> {
  const trees = await Promise.all(THREADS.map((threadId) => tree(one, threadId).catch(String)));
  const read = (await one.database.get("place").catch(() => undefined))?.seq;
  return `${one.name} has saved up to ${read} ${JSON.stringify(trees)} ${[...new Set(one.said)].slice(0, 3).join("; ")}`;
}

test(`whatever fails while devices go on: all come to the same, and nothing is lost (${plays * ROUNDS_OF_A_PLAY} rounds)`, async () => {
  let done = 0;
  const one = async (its: Play): Promise<void> => {
    await new Chaos(its).go();
    // One play may take as long as a test: who waits sees that it goes on.
    if (++done % 10 === 0) console.log(`${done} of ${plays} plays`);
  };
  await fc.assert(fc.asyncProperty(play, one), {
    numRuns: plays,
    seed: inject("propertySeed"),
    endOnFailure: true,
    includeErrorInReport: true,
  });
}, 3_600_000);
