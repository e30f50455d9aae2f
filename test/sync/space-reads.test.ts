import { jetstream } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { systemClock, type Clock } from "../../src/platform/clock.js";
import { encodePart, PART_HEADER } from "../../src/sync/nats/parts.js";
import { SpaceOffline, type Space, type SpaceEntry } from "../../src/sync/space.js";
import { startNats, type NatsServers } from "../setup/nats.mjs";
import {
  addSurely,
  asNewer,
  bytes,
  counting,
  eventually,
  faulty,
  freshName,
  large,
  managerOf,
  openSpace,
  ownServers,
  Reader,
  streamOf,
  text,
  until,
} from "./kit.js";

/*
 * What a space lists when it is asked: the last entry of each thread, and the entries of one thread.
 */

const never = new AbortController().signal;

async function all(entries: AsyncIterable<SpaceEntry>): Promise<SpaceEntry[]> {
  const found: SpaceEntry[] = [];
  for await (const entry of entries) found.push(entry);
  return found;
}

/** Repeated, like a device does, once there is a connection again. */
async function surely<T>(space: Space, call: () => Promise<T>): Promise<T> {
  for (;;) {
    await until(space, "online");
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof SpaceOffline)) throw error;
    }
  }
}

const lastsOf = (space: Space): Promise<SpaceEntry[]> => surely(space, () => all(space.lasts(never)));
const entriesOf = (space: Space, thread: string, after?: number): Promise<SpaceEntry[]> =>
  surely(space, () => all(space.entries(thread, never, after)));

/** Behind each entry come those that come after it when all are read. */
async function expectRests(space: Space, thread: string): Promise<void> {
  const whole = await entriesOf(space, thread);
  for (const [at, { seq }] of whole.entries()) {
    expect(await entriesOf(space, thread, seq)).toEqual(whole.slice(at + 1));
  }
}

const byThread = (entries: readonly SpaceEntry[]): SpaceEntry[] =>
  entries.toSorted((one, other) => (one.thread < other.thread ? -1 : 1));

/** A body as text that is short. */
const brief = (body: Uint8Array): string =>
  body.length < 100 ? text(body) : createHash("sha256").update(body).digest("hex");

const shown = (entries: readonly SpaceEntry[]): unknown[] =>
  entries.map(({ thread, seq, body }) => [thread, seq, brief(body)]);

async function add(space: Space, thread: string, body: Uint8Array, last = 0): Promise<number> {
  const seq = await addSurely(space, thread, body, { last, id: `${thread} after ${last}` });
  if (seq === undefined) throw new Error("Nobody else writes here");
  return seq;
}

/** Leaves two parts of a large entry, and dies. */
async function addHalf(servers: NatsServers, space: string, thread: string, last: number): Promise<void> {
  const dying = openSpace(servers, {
    space,
    connect: faulty({ before: (nth, cut) => (nth === 3 ? cut() : Promise.resolve()) }),
  });
  await until(dying, "online");
  await expect(dying.add(thread, large(3_000_000, 1), { last, id: "half" })).rejects.toThrow(SpaceOffline);
  await dying.close();
}

async function addThreads(space: Space, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, at) => `thread-${at}`);
  for (let at = 0; at < count; at += 50) {
    await Promise.all(names.slice(at, at + 50).map((name) => add(space, name, bytes(name))));
  }
  return names;
}

/** A clock whose deadlines come sooner once it is told to hurry. */
function hurrying(): { readonly clock: Clock; readonly hurry: () => void } {
  const { elapsed, after } = systemClock;
  let since = Infinity;
  const clock: Clock = {
    ...systemClock,
    elapsed: () => elapsed() + 50 * Math.max(0, elapsed() - since),
    after: (ms, signal) => after(ms / 50, signal),
  };
  return { clock, hurry: () => void (since = elapsed()) };
}

const consumersOf = async (servers: NatsServers, space: string) => {
  const manager = await managerOf(servers);
  return (): Promise<unknown[]> => manager.consumers.list(streamOf(space)).next();
};

describe.each([
  { of: "one server", count: 1 as const },
  { of: "a cluster of three", count: 3 as const },
])("on $of", ({ count }) => {
  let servers: NatsServers;
  beforeAll(async () => {
    servers = await startNats({ servers: count });
  });
  afterAll(() => servers.stop());

  const open = (space: string): Space => openSpace(servers, { space, replicas: count });

  test("the last entry of each thread is listed: a large one whole, the one before what is not whole with an empty body", async () => {
    const space = freshName();
    const device = open(space);
    const body = large(3 * 1_024 * 1_024, 7);
    const a = await add(device, "a", bytes("a1"));
    const b = await add(device, "b", bytes("b1"));
    const c = await add(device, "c", bytes("c1"));
    const largeSeq = await add(device, "b", body, b);
    const a2 = await add(device, "a", bytes("a2"), a);
    const d = await add(device, "d", body);
    await addHalf(servers, space, "c", c);
    const lasts = byThread(await lastsOf(device));
    expect(lasts[2]?.end).toBe(d + 2);
    expect(shown(lasts)).toEqual([
      ["a", a2, "a2"],
      ["b", largeSeq, brief(body)],
      ["c", c, ""],
      ["d", d, brief(body)],
    ]);
  });

  test("the entries of a thread come in order, without those of others and what is not whole", async () => {
    const space = freshName();
    const device = open(space);
    const body = large(1_500_000, 3);
    const a1 = await add(device, "a", bytes("a1"));
    const b1 = await add(device, "b", bytes("b1"));
    const a2 = await add(device, "a", body, a1);
    const b2 = await add(device, "b", bytes("b2"), b1);
    const a3 = await add(device, "a", bytes("a3"), a2);
    await addHalf(servers, space, "a", a3);
    await add(device, "c", bytes("c1"));
    expect(shown(await entriesOf(device, "a"))).toEqual([
      ["a", a1, "a1"],
      ["a", a2, brief(body)],
      ["a", a3, "a3"],
    ]);
    expect(shown(await entriesOf(device, "b"))).toEqual([
      ["b", b1, "b1"],
      ["b", b2, "b2"],
    ]);
    expect(await entriesOf(device, "unknown")).toEqual([]);
    for (const thread of ["a", "b"]) await expectRests(device, thread);
  });

  test("an empty space has nothing to list", async () => {
    const device = open(freshName());
    expect(await lastsOf(device)).toEqual([]);
    expect(await entriesOf(device, "a")).toEqual([]);
  });

  test("what was acknowledged before the call is listed", async () => {
    const space = freshName();
    const [writer, reader] = [open(space), open(space)];
    for (let round = 0, last = 0; round < 40; round++) {
      const other = await add(writer, `thread-${round}`, bytes("other"));
      last = await add(writer, "t", bytes(`${round}`), last);
      const lasts = new Map((await lastsOf(reader)).map(({ thread, seq }) => [thread, seq]));
      expect(lasts.get(`thread-${round}`)).toBe(other);
      expect(lasts.get("t")).toBe(last);
      const texts = (await entriesOf(reader, "t")).map(({ body }) => text(body));
      expect(texts).toEqual(Array.from({ length: round + 1 }, (_, at) => `${at}`));
    }
  });

  test.skipIf(count === 1)("it is also listed where the consumer is on a server that is behind", async () => {
    const space = freshName();
    await until(open(space), "online");
    const { streams } = await managerOf(servers);
    const { cluster } = await streams.info(streamOf(space));
    const leader = servers.names.indexOf(cluster?.leader ?? "");
    const device = openSpace({ urls: [servers.urls[leader] ?? ""] }, { space, timeoutMs: 60_000 });
    const follower = (leader + 1) % 3;
    // It has not ended, which is what `kill` waits for.
    void servers.kill(follower, "SIGSTOP");
    const body = large(300_000, 1);
    let last = 0;
    for (let at = 0; at < 100; at++) last = await add(device, "t", body, last);
    const seq = await add(device, "small", bytes("small"));
    void servers.kill(follower, "SIGCONT");
    // On which server a consumer is, is chosen by chance.
    const lists = Array.from({ length: 12 }, async (_, at) => {
      if (at % 2 === 0) return expect(shown(await entriesOf(device, "small"))).toEqual([["small", seq, "small"]]);
      const lasts = new Map((await lastsOf(device)).map((entry) => [entry.thread, entry.seq]));
      return expect(Object.fromEntries(lasts)).toEqual({ t: last, small: seq });
    });
    await Promise.all(lists);
  });

  test.skipIf(count === 1)("void entries are left out of a thread", async () => {
    const space = freshName();
    const device = open(space);
    const reader = new Reader(device);
    const first = await add(device, "t", bytes("first"));
    const second = await add(device, "t", bytes("second"), first);
    const nc = await connect({ servers: [...servers.urls] });
    onTestFinished(() => nc.close());
    // What the servers store where two add at the same time.
    const its = headers();
    its.set(PART_HEADER, encodePart({ number: 1, of: 1, base: first, key: "late" }));
    const { seq } = await jetstream(nc).publish(`agui.${space}.t.t`, "void", { headers: its });
    const third = await add(device, "t", bytes("third"), second);
    expect(seq).toBe(third - 1);
    await eventually(() => expect(reader.texts).toEqual(["first", "second", "third"]));
    expect(await entriesOf(device, "t")).toEqual(reader.entries);
    await expectRests(device, "t");
  });
});

describe("one server", () => {
  let servers: NatsServers;
  beforeAll(async () => {
    servers = await startNats();
  });
  afterAll(() => servers.stop());

  test("2,000 threads are listed completely, and no consumer is left, also where the caller breaks off", async () => {
    const space = freshName();
    const device = openSpace(servers, { space });
    const names = await addThreads(device, 2_000);
    const consumers = await consumersOf(servers, space);
    const found = byThread(await all(device.lasts(never)));
    expect(found.map(({ thread }) => thread)).toEqual(names.toSorted());
    for (const { thread, body } of found) expect(text(body)).toBe(thread);
    await eventually(async () => expect(await consumers()).toEqual([]));
    for await (const _ of device.lasts(never)) {
      expect(await consumers()).toHaveLength(1);
      break;
    }
    await eventually(async () => expect(await consumers()).toEqual([]));
    for await (const _ of device.entries("thread-7", never)) break;
    await eventually(async () => expect(await consumers()).toEqual([]));
  });

  test("threads that get an entry while the list is asked for are not left out", async () => {
    const space = freshName();
    const other = openSpace(servers, { space });
    const a = await add(other, "a", bytes("a1"));
    const b = await add(other, "b", bytes("b1"));
    const c = await add(other, "c", bytes("c1"));
    const device = openSpace(servers, {
      space,
      connect: async (options) => {
        const nc = await connect(options);
        const request = nc.request.bind(nc);
        nc.request = async (subject, ...rest) => {
          const isFirst = subject.includes("CONSUMER.CREATE");
          if (isFirst) await add(other, "a", bytes("a2"), a);
          const answer = await request(subject, ...rest);
          if (isFirst) await add(other, "b", bytes("b2"), b);
          return answer;
        };
        return nc;
      },
    });
    await until(device, "online");
    const found = await all(device.lasts(never));
    expect(shown(found)).toEqual([
      ["b", b, "b1"],
      ["c", c, "c1"],
      ["a", c + 1, "a2"],
      ["b", c + 2, "b2"],
    ]);
  });

  test("they just end when their signal aborts", async () => {
    const space = freshName();
    const device = openSpace(servers, { space });
    await addThreads(device, 500);
    const consumers = await consumersOf(servers, space);
    const aborted = new AbortController();
    let count = 0;
    for await (const _ of device.lasts(aborted.signal)) if (++count === 3) aborted.abort();
    expect(count).toBeLessThan(500);
    await eventually(async () => expect(await consumers()).toEqual([]));
    expect(await all(device.lasts(aborted.signal))).toEqual([]);
    expect(await all(device.entries("thread-1", aborted.signal))).toEqual([]);
    await device.close();
    expect(await all(device.lasts(aborted.signal))).toEqual([]);
  });

  test("without a connection they fail, and a thread that cannot be has no entries", async () => {
    const device = openSpace(servers, { space: freshName() });
    await expect(all(device.lasts(never))).rejects.toThrow(SpaceOffline);
    await expect(all(device.entries("t", never))).rejects.toThrow(SpaceOffline);
    await until(device, "online");
    await expect(all(device.entries("*", never))).rejects.toThrow(TypeError);
  });

  /** What happens in the middle. */
  interface Middle {
    readonly nc: NatsConnection;
    readonly device: Space;
    readonly stream: string;
    readonly own: NatsServers;
  }

  test.each<[string, (of: Middle) => Promise<void>]>([
    ["whose connection is cut", ({ nc }) => nc.close()],
    ["whose server is killed", ({ own }) => own.kill()],
    ["whose space is closed", ({ device }) => device.close()],
    [
      "whose consumer is lost",
      async ({ own, stream }) => {
        const { consumers } = await managerOf(own);
        const reads = await consumers.list(stream).next();
        expect(reads).toHaveLength(1);
        await consumers.delete(stream, reads[0]!.name);
      },
    ],
    ["whose stream is deleted", async ({ own, stream }) => void (await (await managerOf(own)).streams.delete(stream))],
  ])("a list %s in the middle is SpaceOffline, not a short one", async (_, happen) => {
    const own = await ownServers();
    for (const list of ["lasts", "entries"] as const) {
      const space = freshName();
      let nc: NatsConnection | undefined;
      const { clock, hurry } = hurrying();
      const device = openSpace(own, { space, clock, connect: async (options) => (nc = await connect(options)) });
      if (list === "lasts") await addThreads(device, 700);
      else for (let last = 0, at = 0; at < 700; at++) last = await add(device, "t", bytes(`${at}`), last);
      let count = 0;
      const reading = (async () => {
        for await (const _entry of list === "lasts" ? device.lasts(never) : device.entries("t", never)) {
          if (++count !== 10) continue;
          await happen({ nc: nc!, device, stream: streamOf(space), own });
          hurry();
        }
      })();
      await expect(reading).rejects.toThrow(SpaceOffline);
      expect(count).toBeGreaterThanOrEqual(10);
      expect(count).toBeLessThan(700);
      await own.restart();
    }
  });

  test("who is told SpaceOffline hears a `begins` when it can be asked again", async () => {
    let fails = false;
    const connecting = counting("CONSUMER.CREATE", () => {
      if (fails) throw new Error("The server makes none");
    });
    const device = openSpace(servers, { space: freshName(), connect: connecting });
    const reader = new Reader(device);
    const seq = await add(device, "t", bytes("one"));
    await eventually(() => expect(reader.entries).toHaveLength(1));
    fails = true;
    await expect(all(device.lasts(never))).rejects.toThrow(SpaceOffline);
    fails = false;
    await eventually(() => expect(reader.begins.length).toBeGreaterThan(1));
    expect(shown(await lastsOf(device))).toEqual([["t", seq, "one"]]);
  });

  test("what should be there and does not come is not waited for without end", async () => {
    const space = freshName();
    const manager = await managerOf(servers);
    let purges = false;
    const device = openSpace(servers, {
      space,
      connect: async (options) => {
        const nc = await connect(options);
        const request = nc.request.bind(nc);
        nc.request = async (subject, ...rest) => {
          const answer = await request(subject, ...rest);
          // Now it is known what the last message is.
          if (purges && subject.includes("STREAM.MSG.GET")) await manager.streams.purge(streamOf(space));
          return answer;
        };
        const publish = nc.publish.bind(nc);
        nc.publish = (subject, payload, ...rest) => {
          const isPull = subject.includes("CONSUMER.MSG.NEXT");
          const sooner = { ...(isPull && JSON.parse(`${payload}`)), expires: 200_000_000, idle_heartbeat: 50_000_000 };
          publish(subject, isPull ? JSON.stringify(sooner) : payload, ...rest);
        };
        return nc;
      },
    });
    await add(device, "t", bytes("one"));
    purges = true;
    await expect(all(device.lasts(never))).rejects.toThrow(SpaceOffline);
  });
});

test("the permissions of the guide suffice", async () => {
  const guide = readFileSync(new URL("../../demo/guides/sync.md", import.meta.url), "utf8");
  const accounts = /^accounts \{$[\s\S]*?^\}$/m.exec(guide)?.[0] ?? "";
  expect(accounts).toContain("permissions");
  const servers = await ownServers({ config: accounts.replace(/password: "[^"]*"/, `password: "x"`) });
  const credentials = { user: "ann", password: "x" };
  const device = openSpace(servers, { space: "ann", credentials, timeoutMs: 60_000, connect: asNewer });
  const reader = new Reader(device);
  const a = await add(device, "a", bytes("a1"));
  const b = await add(device, "b", bytes("b1"));
  const body = large(1_500_000, 3);
  const a2 = (await device.add("a", body, { last: a, id: "whole", isWhole: true }))!;
  await eventually(() => expect(reader.entries).toHaveLength(3));
  // More often than there may be consumers.
  for (let round = 0; round < 25; round++) {
    expect(shown(byThread(await all(device.lasts(never))))).toEqual([
      ["a", a2, brief(body)],
      ["b", b, "b1"],
    ]);
    expect(shown(await all(device.entries("a", never)))).toEqual([
      ["a", a, "a1"],
      ["a", a2, brief(body)],
    ]);
  }
  expect(await device.remove?.("a", 0)).toBe(true);
  expect(await device.remove?.("a", a2)).toBe(true);
  expect(shown(await all(device.entries("a", never)))).toEqual([["a", a2, brief(body)]]);
  expect(reader.begins).toHaveLength(1);
});
