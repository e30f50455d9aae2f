import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { encodePart, PART_HEADER } from "../../src/sync/nats/parts.js";
import type { Space } from "../../src/sync/space.js";
import { startNats, type NatsServers } from "../setup/nats.mjs";
import {
  addSurely,
  asNewer,
  bytes,
  canRemove,
  eventually,
  freshName,
  large,
  openSpace,
  ownServers,
  Reader,
  text,
  until,
} from "./kit.js";

/*
 * Entries that are removed, because a later one stands for them.
 */

const never = new AbortController().signal;

const removed = (space: Space, thread: string, below: number): Promise<boolean> =>
  space.remove?.(thread, below) ?? Promise.resolve(false);

async function textsOf(space: Space, thread: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { body } of space.entries(thread, never)) found.push(short(body));
  return found;
}

const short = (body: Uint8Array): string => (body.length > 100 ? `${body.length} bytes` : text(body));

describe.each([
  { of: "one server", count: 1 as const },
  { of: "a cluster of three", count: 3 as const },
])("on $of", ({ count }) => {
  let servers: NatsServers;
  beforeAll(async () => {
    servers = await startNats({ servers: count });
  });
  afterAll(() => servers.stop());

  const open = (space: string): Space => openSpace(servers, { space, replicas: count, connect: asNewer });

  async function add(
    device: Space,
    thread: string,
    body: Uint8Array,
    last: number,
    id: string,
    isWhole = false,
  ): Promise<number> {
    const seq = await addSurely(device, thread, body, { last, id, isWhole });
    if (seq === undefined) throw new Error(`Nobody else writes here: ${id}`);
    return seq;
  }

  test("what stands for others is read by those who know them, who know some, and who know none", async () => {
    const space = freshName();
    const device = open(space);
    await until(device, "online");
    const early = new Reader(open(space));
    const a1 = await add(device, "a", bytes("a1"), 0, "a1");
    const b1 = await add(device, "b", bytes("b1"), 0, "b1");
    const a2 = await add(device, "a", large(700_000, 1), a1, "a2");
    const a3 = await add(device, "a", bytes("a3"), a2, "a3");
    const all = (reader: Reader): string[] => reader.entries.map(({ body }) => short(body));
    // What is removed before it was read is read by nobody.
    await eventually(() => expect(all(early)).toHaveLength(4));
    // Two at once: one is void in a cluster, and refused elsewhere.
    const both = await Promise.all(
      [device, open(space)].map((one, n) =>
        addSurely(one, "a", large(1_200_000 + n, 2), { last: a3, id: `w${n}`, isWhole: true }),
      ),
    );
    const whole = both.findIndex((seq) => seq !== undefined);
    expect(both.filter((seq) => seq !== undefined)).toHaveLength(1);
    expect(await removed(device, "a", both[whole] ?? 0)).toBe(true);
    const b2 = await add(device, "b", bytes("b2"), b1, "b2");
    const a4 = await add(device, "a", bytes("a4"), both[whole] ?? 0, "a4");
    const stands = `${1_200_000 + whole} bytes`;
    expect(await textsOf(device, "a")).toEqual([stands, "a4"]);
    const fresh = new Reader(open(space));
    const { log = "" } = early.begins[0] ?? {};
    const middle = new Reader(open(space), { log, seq: a2 });
    await eventually(() => expect(all(fresh)).toEqual(["b1", stands, "b2", "a4"]));
    await eventually(() => expect(all(middle)).toEqual([stands, "b2", "a4"]));
    await eventually(() => expect(all(early)).toEqual(["a1", "b1", "700000 bytes", "a3", stands, "b2", "a4"]));
    const lasts: string[] = [];
    for await (const { body } of device.lasts(never)) lasts.push(text(body));
    expect(lasts.toSorted()).toEqual(["a4", "b2"]);
    // Who adds behind what is gone is too late, also with an id that was there.
    expect(await addSurely(device, "a", bytes("x"), { last: a3, id: "x" })).toBeUndefined();
    expect(await addSurely(device, "a", bytes("x"), { last: 0, id: "y" })).toBeUndefined();
    expect(await add(device, "a", bytes("a5"), a4, "a5")).toBeGreaterThan(b2);
    await eventually(() => expect(all(fresh)).toEqual(["b1", stands, "b2", "a4", "a5"]));
    expect(await textsOf(device, "a")).toEqual([stands, "a4", "a5"]);
  });

  test("who is reading while entries are removed goes on with the one that stands for them", async () => {
    const space = freshName();
    const device = open(space);
    await until(device, "online");
    let last = 0;
    for (let n = 0; n < 600; n++) last = await add(device, "a", bytes(`a${n}`), last, `a${n}`);
    const reading = open(space).read(undefined, never);
    const texts: string[] = [];
    const take = async (): Promise<void> => {
      const { value } = await reading.next();
      if (value?.is === "entry") texts.push(short(value.body));
    };
    while (texts.length < 1) await take();
    const whole = await add(device, "a", bytes("whole"), last, "whole", true);
    expect(await removed(device, "a", whole)).toBe(true);
    await add(device, "a", bytes("next"), whole, "next");
    while (!texts.includes("next")) await take();
    await reading.return();
    // What it had asked for before comes, the rest is gone.
    expect(texts.length).toBeLessThan(600);
    expect(texts.slice(-2)).toEqual(["whole", "next"]);
  });

  test.runIf(count === 3)("what a writer that was away adds behind entries that are gone says nothing", async () => {
    const space = freshName();
    const device = open(space);
    await until(device, "online");
    const first = await add(device, "a", bytes("a1"), 0, "a1");
    const whole = await add(device, "a", bytes("whole"), first, "whole", true);
    expect(await removed(device, "a", whole)).toBe(true);
    // As servers of a cluster take it, whatever it says of the last one.
    const nc = await connect({ servers: servers.urls[0] ?? "" });
    onTestFinished(() => nc.close());
    for (const base of [0, first]) {
      const header = headers();
      header.set(PART_HEADER, encodePart({ number: 1, of: 1, base, key: `late${base}` }));
      await jetstream(nc).publish(`agui.${space}.t.a`, bytes(`late ${base}`), { headers: header });
    }
    await add(device, "b", bytes("b1"), 0, "b1");
    const fresh = new Reader(open(space));
    await eventually(() => expect(fresh.texts).toEqual(["whole", "b1"]));
    const later = new Reader(open(space), { log: fresh.begins[0]?.log ?? "", seq: whole });
    await eventually(() => expect(later.texts).toEqual(["b1"]));
    expect(await textsOf(device, "a")).toEqual(["whole"]);
    // Behind it, all go on.
    await add(device, "a", bytes("next"), whole, "next");
    for (const reader of [fresh, later]) await eventually(() => expect(reader.texts.at(-1)).toBe("next"));
  });

  test("what is removed twice, or has only itself, loses nothing", async () => {
    const space = freshName();
    const device = open(space);
    await until(device, "online");
    const first = await add(device, "a", bytes("a1"), 0, "a1");
    expect(await removed(device, "a", 0)).toBe(true);
    expect(await removed(device, "a", first)).toBe(true);
    expect(await textsOf(device, "a")).toEqual(["a1"]);
    const second = await add(device, "a", bytes("a2"), first, "a2", true);
    for (let round = 0; round < 2; round++) expect(await removed(device, "a", second)).toBe(true);
    // Removed by others in between.
    expect(await removed(device, "a", first)).toBe(true);
    // Of another thread.
    expect(await removed(device, "b", second)).toBe(true);
    expect(await textsOf(device, "a")).toEqual(["a2"]);
    const reader = new Reader(open(space));
    await eventually(() => expect(reader.texts).toEqual(["a2"]));
    expect(reader.begins).toEqual([{ is: "begins", log: expect.any(String), last: second }]);
  });
});

test.each([1, 3] as const)("where servers (%i) would do more than remove, nothing is removed", async (count) => {
  const servers = await ownServers({ servers: count });
  const device = openSpace(servers, { space: freshName(), replicas: count });
  await until(device, "online");
  expect(await removed(device, "a", 0)).toBe(await canRemove(servers));
});

test("where it is not allowed it says so, removes nothing, and stays connected", async () => {
  const config = `authorization { users: [{ user: "ann", password: "x", permissions: {
    publish: { deny: ["$JS.API.STREAM.PURGE.>"] }, subscribe: [">"] } }] }`;
  const servers = await ownServers({ config });
  const credentials = { user: "ann", password: "x" };
  const device = openSpace(servers, { space: freshName(), credentials, connect: asNewer });
  const states: string[] = [];
  device.state$.subscribe(({ is }) => states.push(is));
  await until(device, "online");
  const one = (await device.add("a", bytes("a1"), { last: 0, id: "a1" })) ?? 0;
  const two = (await device.add("a", bytes("a2"), { last: one, id: "a2", isWhole: true })) ?? 0;
  expect(await removed(device, "a", 0)).toBe(false);
  expect(await removed(device, "a", two)).toBe(false);
  expect(await textsOf(device, "a")).toEqual(["a1", "a2"]);
  expect(states).toEqual(["connecting", "online"]);
});
