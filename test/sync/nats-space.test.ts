import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { systemClock, type Clock } from "../../src/platform/clock.js";
import type { NatsCredentials } from "../../src/sync/nats/nats-space.js";
import { SpaceOffline } from "../../src/sync/space.js";
import { startNats, type NatsServers } from "../setup/nats.mjs";
import {
  addSurely,
  bytes,
  counting,
  createdSpace,
  deafen,
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

describe("one server", () => {
  let servers: NatsServers;
  beforeAll(async () => {
    servers = await startNats();
  });
  afterAll(() => servers.stop());

  test("all readers get the entries of two writers in one order, each once", async () => {
    const space = freshName();
    const devices = [openSpace(servers, { space }), openSpace(servers, { space })];
    const early = new Reader(openSpace(servers, { space }));
    const added = await Promise.all(
      devices.map(async (device, at) => {
        await until(device, "online");
        const seqs: number[] = [];
        for (let round = 0, last = 0; round < 300; round++) {
          const seq = await device.add(`thread-${at}`, bytes(`${at}.${round}`), { last, id: `${round}` });
          if (seq === undefined) throw new Error("Nobody else writes here");
          seqs.push((last = seq));
        }
        return seqs;
      }),
    );
    const late = new Reader(openSpace(servers, { space }));
    for (const reader of [early, late]) await eventually(() => expect(reader.entries.length).toBe(600));
    expect(late.entries).toEqual(early.entries);
    const seqs = early.entries.map(({ seq }) => seq);
    expect(seqs).toEqual(added.flat().sort((one, other) => one - other));
    for (const at of [0, 1]) {
      const its = early.entries.filter(({ thread }) => thread === `thread-${at}`);
      expect(its.map(({ body }) => text(body))).toEqual(Array.from({ length: 300 }, (_, round) => `${at}.${round}`));
    }
    expect(late.begins).toEqual([{ is: "begins", log: expect.any(String), last: 600 }]);
  });

  test("a reader goes on after the place that it knows", async () => {
    const space = freshName();
    const device = openSpace(servers, { space });
    const first = new Reader(device);
    await until(device, "online");
    let last = 0;
    for (const id of ["a", "b", "c"]) last = (await device.add("t", bytes(id), { last, id })) ?? 0;
    await eventually(() => expect(first.texts).toEqual(["a", "b", "c"]));
    const log = first.begins[0]?.log ?? "";
    const next = new Reader(device, { log, seq: first.entries[0]?.seq ?? 0 });
    await eventually(() => expect(next.texts).toEqual(["b", "c"]));
    const foreign = new Reader(device, { log: "another", seq: 2 });
    await eventually(() => expect(foreign.texts).toEqual(["a", "b", "c"]));
    // A server that was set back.
    const hasty = openSpace(servers, { space, timeoutMs: 500 });
    const beyond = new Reader(hasty, { log, seq: last + 10 });
    await eventually(() => expect(beyond.texts).toEqual(["a", "b", "c"]));
  });

  test("of 20 that add after the same entry, one wins each time", async () => {
    const space = freshName();
    const devices = Array.from({ length: 20 }, () => openSpace(servers, { space }));
    const readers = [new Reader(openSpace(servers, { space })), new Reader(openSpace(servers, { space }))];
    await Promise.all(devices.map((device) => until(device, "online")));
    const won: string[] = [];
    for (let round = 0, last = 0; round < 20; round++) {
      const results = await Promise.all(
        devices.map((device, at) => device.add("t", bytes(`${round}.${at}`), { last, id: `${round}.${at}` })),
      );
      const winners = [...results.entries()].filter(([, seq]) => seq !== undefined);
      expect(winners.length).toBe(1);
      const [at, seq] = winners[0] ?? [];
      won.push(`${round}.${at}`);
      last = seq ?? 0;
    }
    for (const reader of readers) {
      await eventually(() => expect(reader.texts).toEqual(won));
    }
  });

  test("an id that is repeated adds nothing, in its thread", async () => {
    const space = freshName();
    const device = openSpace(servers, { space });
    const reader = new Reader(device);
    await until(device, "online");
    const seq = await device.add("t", bytes("one"), { last: 0, id: "same" });
    expect(await device.add("t", bytes("again"), { last: 0, id: "same" })).toBe(seq);
    expect(await device.add("u", bytes("other"), { last: 0, id: "same" })).toBe((seq ?? 0) + 1);
    await eventually(() => expect(reader.texts).toEqual(["one", "other"]));
  });

  test("one who was too late adds under the same id after what came in between", async () => {
    const space = freshName();
    const device = openSpace(servers, { space });
    await until(device, "online");
    const first = await device.add("t", bytes("one"), { last: 0, id: "one" });
    expect(await device.add("t", bytes("two"), { last: 0, id: "two" })).toBeUndefined();
    expect(await device.add("t", bytes("two"), { last: first ?? 0, id: "two" })).toBe((first ?? 0) + 1);
  });

  test("a call whose answer was lost is repeated long after, and adds nothing", async () => {
    const space = freshName();
    const manager = await managerOf(servers);
    const window = 100_000_000; // ns; the shortest that the server takes
    await manager.streams.add({ name: streamOf(space), subjects: [`agui.${space}.t.*`], duplicate_window: window });
    const device = openSpace(servers, {
      space,
      connect: faulty({ after: (nth, cut) => (nth === 1 ? cut() : Promise.resolve()) }),
    });
    const reader = new Reader(openSpace(servers, { space }));
    await until(device, "online");
    await expect(device.add("t", bytes("one"), { last: 0, id: "one" })).rejects.toThrow(SpaceOffline);
    const nc = await connect({ servers: servers.urls[0] ?? "" });
    onTestFinished(() => nc.close());
    // Once this id may be used again, so may the older one.
    const publish = async (): Promise<boolean> =>
      (await jetstream(nc).publish(`agui.${space}.t.probe`, "", { msgID: "probe" })).duplicate;
    expect(await publish()).toBe(false);
    await eventually(async () => expect(await publish()).toBe(false));
    await until(device, "online");
    expect(await device.add("t", bytes("one"), { last: 0, id: "one" })).toBe(1);
    await eventually(() => expect(reader.texts.filter((it) => it !== "")).toEqual(["one"]));
  });

  test("an entry of 3 MB is handed out whole, also to one who begins in the middle of it", async () => {
    const space = freshName();
    const device = openSpace(servers, { space });
    const reader = new Reader(device);
    await until(device, "online");
    const body = large(3 * 1_024 * 1_024, 7);
    const seq = (await device.add("t", body, { last: 0, id: "large" })) ?? 0;
    expect(seq).toBe(6);
    expect(await device.add("t", bytes("next"), { last: seq, id: "next" })).toBe(7);
    await eventually(() => expect(reader.entries.length).toBe(2));
    expect(reader.entries.map((entry) => entry.seq)).toEqual([6, 7]);
    expect(Buffer.compare(reader.entries[0]?.body ?? new Uint8Array(), body)).toBe(0);
    const middle = new Reader(device, { log: reader.begins[0]?.log ?? "", seq: 3 });
    await eventually(() => expect(middle.entries.map((entry) => entry.seq)).toEqual([6, 7]));
    expect(Buffer.compare(middle.entries[0]?.body ?? new Uint8Array(), body)).toBe(0);
  });

  test("a large entry that is repeated adds nothing, and leaves no parts", async () => {
    const space = freshName();
    const device = openSpace(servers, { space });
    await until(device, "online");
    const body = large(1_500_000, 3);
    expect(await device.add("t", body, { last: 0, id: "large" })).toBe(3);
    for (const last of [0, 3]) expect(await device.add("t", body, { last, id: "large" })).toBe(3);
    const manager = await managerOf(servers);
    expect((await manager.streams.info(streamOf(space))).state.last_seq).toBe(3);
  });

  test("a writer that dies between two parts blocks nobody, and nothing of it is handed out", async () => {
    const space = freshName();
    const dying = openSpace(servers, {
      space,
      connect: faulty({ before: (nth, cut) => (nth === 4 ? cut() : Promise.resolve()) }),
    });
    // Who has died is passed over sooner; answers may take as long as ever.
    const clock: Clock = { ...systemClock, elapsed: () => 10 * systemClock.elapsed() };
    const device = openSpace(servers, { space, clock });
    const reader = new Reader(openSpace(servers, { space }));
    await until(dying, "online");
    const first = (await dying.add("t", bytes("first"), { last: 0, id: "first" })) ?? 0;
    await expect(dying.add("t", large(3_000_000, 1), { last: first, id: "lost" })).rejects.toThrow(SpaceOffline);
    const fresh = new Reader(openSpace(servers, { space }));
    await eventually(() => expect(fresh.begins).toEqual([{ is: "begins", log: expect.any(String), last: first + 2 }]));
    await until(device, "online");
    expect(await device.add("t", bytes("second"), { last: first, id: "second" })).toBe(first + 3);
    const body = large(2_000_000, 2);
    expect(await device.add("t", body, { last: first + 3, id: "third" })).toBe(first + 7);
    for (const each of [reader, fresh]) {
      await eventually(() => expect(each.entries.map(({ seq }) => seq)).toEqual([first, first + 3, first + 7]));
      expect(Buffer.compare(each.entries[2]?.body ?? new Uint8Array(), body)).toBe(0);
    }
  });

  test("a writer goes on after its own unfinished parts at once", async () => {
    const space = freshName();
    const device = openSpace(servers, {
      space,
      timeoutMs: 600_000,
      connect: faulty({ after: (nth, cut) => (nth === 2 ? cut() : Promise.resolve()) }),
    });
    const reader = new Reader(openSpace(servers, { space }));
    await until(device, "online");
    const body = large(2_000_000, 9);
    expect(await addSurely(device, "t", body, { last: 0, id: "large" })).toBe(6);
    await eventually(() => expect(reader.entries.map(({ seq }) => seq)).toEqual([6]));
    expect(Buffer.compare(reader.entries[0]?.body ?? new Uint8Array(), body)).toBe(0);
  });

  test("who adds waits for another's large entry that is on its way, and is too late", async () => {
    const space = freshName();
    let resume = (): void => undefined;
    const paused = new Promise<void>((resolve) => (resume = resolve));
    const slow = openSpace(servers, {
      space,
      connect: faulty({ before: (nth) => (nth === 3 ? paused : Promise.resolve()) }),
    });
    let looks = 0;
    const device = openSpace(servers, { space, timeoutMs: 60_000, connect: counting("STREAM.MSG.GET", () => looks++) });
    await Promise.all([until(slow, "online"), until(device, "online")]);
    const manager = await managerOf(servers);
    const adding = slow.add("t", large(2_000_000, 1), { last: 0, id: "large" });
    await eventually(async () => expect((await manager.streams.info(streamOf(space))).state.last_seq).toBe(2));
    const late = device.add("t", bytes("small"), { last: 0, id: "small" });
    await eventually(() => expect(looks).toBeGreaterThan(6));
    resume();
    expect(await adding).toBe(4);
    expect(await late).toBeUndefined();
  });

  test("what is told comes to all that are online", async () => {
    const space = freshName();
    const devices = [openSpace(servers, { space }), openSpace(servers, { space })];
    const heard: string[][] = [[], []];
    devices.forEach((device, at) => device.told$.subscribe((body) => heard[at]?.push(text(body))));
    await Promise.all(devices.map((device) => until(device, "online")));
    await eventually(() => {
      devices[0]?.tell(bytes("hello"));
      for (const its of heard) expect(its).toContain("hello");
    });
  });

  test("a consumer that gets nothing of what is there is given up for another one", async () => {
    const space = freshName();
    const writer = openSpace(servers, { space });
    await until(writer, "online");
    const hasty: Clock = { ...systemClock, after: (ms, signal) => systemClock.after(Math.min(ms, 200), signal) };
    let consumers = 0;
    const deaf: typeof connect = async (options) => {
      const nc = await connect(options);
      deafen(nc, () => ++consumers === 1);
      return nc;
    };
    const reader = new Reader(openSpace(servers, { space, connect: deaf, clock: hasty }));
    await eventually(() => expect(reader.begins).toHaveLength(1));
    await writer.add("t", bytes("first"), { last: 0, id: "first" });
    await eventually(() => expect(reader.texts).toEqual(["first"]));
    expect(consumers).toBeGreaterThan(1);
  });

  test("a connection whose server does not say what is there is given up, where its consumer gets nothing", async () => {
    const space = freshName();
    const writer = openSpace(servers, { space });
    await until(writer, "online");
    const hasty: Clock = { ...systemClock, after: (ms, signal) => systemClock.after(Math.min(ms, 200), signal) };
    let connections = 0;
    const cutOff: typeof connect = async (options) => {
      const nc = await connect(options);
      if (++connections > 1) return nc;
      deafen(nc, () => true);
      const request = nc.request.bind(nc);
      nc.request = (subject, ...given) =>
        subject.includes("STREAM.MSG.GET") ? Promise.reject(new Error("timeout")) : request(subject, ...given);
      return nc;
    };
    const reader = new Reader(openSpace(servers, { space, connect: cutOff, clock: hasty }));
    await eventually(() => expect(reader.begins).toHaveLength(1));
    await writer.add("t", bytes("first"), { last: 0, id: "first" });
    await eventually(() => expect(reader.texts).toEqual(["first"]));
    expect(connections).toBeGreaterThan(1);
  });

  test("a stream that is deleted and made anew is another log", async () => {
    const space = freshName();
    const device = openSpace(servers, { space });
    const reader = new Reader(device);
    await until(device, "online");
    await device.add("t", bytes("one"), { last: 0, id: "one" });
    const two = await device.add("u", bytes("two"), { last: 0, id: "two" });
    await eventually(() => expect(reader.texts).toEqual(["one", "two"]));
    const manager = await managerOf(servers);
    await manager.streams.delete(streamOf(space));
    await eventually(() => expect(reader.begins.length).toBeGreaterThan(1));
    expect(reader.begins.at(-1)?.log).not.toBe(reader.begins[0]?.log);
    expect(reader.begins.at(-1)?.last).toBe(0);
    // Whoever adds after what is gone is to hear first that it is.
    await expect(device.add("t", bytes("anew"), { last: two ?? 0, id: "old" })).rejects.toThrow(SpaceOffline);
    expect(await addSurely(device, "t", bytes("anew"), { last: 0, id: "anew" })).toBe(1);
    await eventually(() => expect(reader.texts).toEqual(["one", "two", "anew"]));
  });

  test("after close reads have ended and nothing is added", async () => {
    const device = openSpace(servers, { space: freshName() });
    const reader = new Reader(device);
    await eventually(() => expect(reader.begins.length).toBe(1));
    await device.close();
    await reader.done;
    await expect(device.add("t", bytes("late"), { last: 0, id: "late" })).rejects.toThrow(SpaceOffline);
    device.tell(bytes("late"));
  });
});

describe("servers that fail", () => {
  test("a server that is killed and comes back loses and doubles nothing", async () => {
    const servers = await ownServers();
    const space = freshName();
    const device = openSpace(servers, { space });
    const reader = new Reader(openSpace(servers, { space }));
    const acknowledged: string[] = [];
    const enough = new AbortController();
    const adding = (async () => {
      for (let last = 0, round = 0; !enough.signal.aborted; round++) {
        const seq = await addSurely(device, "t", bytes(`${round}`), { last, id: `${round}` });
        if (seq === undefined) throw new Error(`Nobody else writes here: ${round} after ${last}`);
        acknowledged.push(`${round}`);
        last = seq;
      }
    })();
    const states: string[] = [];
    device.state$.subscribe(({ is }) => states.push(is));
    await eventually(() => expect(reader.begins.length).toBe(1));
    for (let kills = 0; kills < 3; kills++) {
      const { length } = acknowledged;
      await eventually(() => expect(acknowledged.length).toBeGreaterThan(length + 50));
      await servers.kill();
      await until(device, "offline");
      await servers.restart();
      // Whoever reads comes back by itself, not at the same time.
      await eventually(() => expect(reader.begins.length).toBeGreaterThan(kills + 1));
    }
    const { length } = acknowledged;
    await eventually(() => expect(acknowledged.length).toBeGreaterThan(length + 50));
    enough.abort();
    await adding;
    await eventually(() => expect(reader.texts.length).toBeGreaterThanOrEqual(acknowledged.length));
    expect(reader.texts).toEqual(acknowledged);
    expect(new Set(reader.begins.map(({ log }) => log)).size).toBe(1);
    expect(states).toEqual(expect.arrayContaining(["online", "offline"]));
  });

  test("credentials that are not valid are refused, and asked for again where a function gives them", async () => {
    const servers = await ownServers({ config: `authorization { user: "ann", password: "right" }` });
    const space = freshName();
    const wrong = openSpace(servers, { space, credentials: { user: "ann", password: "wrong" } });
    expect(await until(wrong, "refused")).toMatchObject({ message: expect.stringMatching(/authorization/i) });
    await expect(wrong.add("t", bytes("one"), { last: 0, id: "one" })).rejects.toThrow(SpaceOffline);
    const given: NatsCredentials[] = [];
    const credentials = async (): Promise<NatsCredentials> => {
      const next = { user: "ann", password: given.length === 0 ? "wrong" : "right" };
      given.push(next);
      return next;
    };
    // The next attempt is not waited for.
    const clock: Clock = { ...systemClock, after: (ms, signal) => systemClock.after(Math.min(ms, 100), signal) };
    const renewed = openSpace(servers, { space, credentials, clock });
    await until(renewed, "refused");
    await until(renewed, "online");
    expect(given.length).toBe(2);
    expect(await renewed.add("t", bytes("one"), { last: 0, id: "one" })).toBe(1);
  });

  test("who may not create or read the space is refused", async () => {
    const config = `authorization { users: [{ user: "ann", password: "x", permissions: { publish: ["agui.>"], subscribe: [">"] } }] }`;
    const servers = await ownServers({ config });
    const device = openSpace(servers, { space: freshName(), credentials: { user: "ann", password: "x" } });
    expect(await until(device, "refused")).toMatchObject({ message: expect.stringMatching(/permissions/i) });
  });

  test("in a cluster one of several wins, and the others add under the same ids after it", async () => {
    const servers = await ownServers({ servers: 3 });
    const space = await createdSpace(servers);
    const devices = Array.from({ length: 4 }, () => openSpace(servers, { space, replicas: 3 }));
    const reader = new Reader(openSpace(servers, { space, replicas: 3 }));
    await Promise.all(devices.map((device) => until(device, "online")));
    const won: string[] = [];
    let last = 0;
    for (let round = 0; round < 10; round++) {
      const waiting = new Map(devices.map((device, at) => [`${round}.${at}`, device]));
      while (waiting.size > 0) {
        const at = last;
        const results = await Promise.all(
          // Servers that do not know yet who keeps the new stream say that nobody does.
          [...waiting].map(async ([id, device]) => ({
            id,
            seq: await addSurely(device, "t", bytes(id), { last: at, id }),
          })),
        );
        const winners = results.filter(({ seq }) => seq !== undefined);
        expect(winners.length).toBe(1);
        for (const { id, seq = 0 } of winners) {
          won.push(id);
          waiting.delete(id);
          last = seq;
        }
      }
    }
    await eventually(() => expect(reader.texts).toEqual(won));
    // Who begins in the middle has not seen what made others void.
    for (const [at, { seq }] of [...reader.entries.entries()].filter(([index]) => index % 7 === 3)) {
      const later = new Reader(openSpace(servers, { space }), { log: reader.begins[0]?.log ?? "", seq });
      await eventually(() => expect(later.texts.length).toBeGreaterThanOrEqual(won.length - at - 1));
      expect(later.texts).toEqual(won.slice(at + 1));
    }
  });

  test("a cluster whose leader is killed under load loses and doubles nothing", async () => {
    const servers = await ownServers({ servers: 3 });
    const space = await createdSpace(servers);
    const devices = Array.from({ length: 4 }, () => openSpace(servers, { space, replicas: 3 }));
    const readers = [
      new Reader(openSpace(servers, { space, replicas: 3 })),
      new Reader(openSpace(servers, { space, replicas: 3 })),
    ];
    const acknowledged: string[] = [];
    const enough = new AbortController();
    const adding = devices.map(async (device, at) => {
      for (let last = 0, round = 0; !enough.signal.aborted; round++) {
        const seq = await addSurely(device, `t${at}`, bytes(`${at}.${round}`), { last, id: `${round}` });
        if (seq === undefined) throw new Error(`Nobody else writes here: ${at}.${round} after ${last}`);
        acknowledged.push(`${at}.${round}`);
        last = seq;
      }
    });
    const more = async (count: number): Promise<void> => {
      const { length } = acknowledged;
      await eventually(() => expect(acknowledged.length).toBeGreaterThan(length + count));
    };
    for (let kills = 0; kills < 2; kills++) {
      await more(300);
      const manager = await managerOf(servers);
      const { cluster } = await manager.streams.info(streamOf(space));
      const leader = servers.names.indexOf(cluster?.leader ?? "");
      expect(leader).toBeGreaterThanOrEqual(0);
      await servers.kill(leader);
      await more(300);
      await servers.restart(leader);
    }
    await more(300);
    enough.abort();
    await Promise.all(adding);
    for (const reader of readers) {
      await eventually(() => expect(reader.entries.length).toBeGreaterThanOrEqual(acknowledged.length));
      expect([...reader.texts].sort()).toEqual([...acknowledged].sort());
      expect(new Set(reader.begins.map(({ log }) => log)).size).toBe(1);
    }
    expect(readers[1]?.entries).toEqual(readers[0]?.entries);
  });
});
