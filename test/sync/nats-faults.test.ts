import { jetstream } from "@nats-io/jetstream";
import { headers, type ConnectionOptions, type Msg, type NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { systemClock, type Clock } from "../../src/platform/clock.js";
import { encodePart, PART_HEADER, type Part } from "../../src/sync/nats/parts.js";
import { SpaceOffline, type Space, type SpaceEntry } from "../../src/sync/space.js";
import { wholeThread } from "../../src/sync/whole-thread.js";
import { startNats, type NatsServers } from "../setup/nats.mjs";
import {
  addSurely,
  bytes,
  eventually,
  freshName,
  large,
  managerOf,
  openSpace,
  Reader,
  streamOf,
  text,
  until,
  type Begins,
} from "./kit.js";

/*
 * Servers that lack something, or have something that nobody would write.
 */

let servers: NatsServers;
beforeAll(async () => {
  servers = await startNats();
});
afterAll(() => servers.stop());

/** What a server answers, as it is sent. */
interface Answer {
  readonly message?: { readonly seq: number };
  readonly config?: object;
}

const json = ({ data }: Msg): Answer => JSON.parse(new TextDecoder().decode(data));

/** A connection whose answers are changed: undefined leaves one as it is. */
function answering(
  change: (subject: string, answer: Answer) => unknown,
): (options: ConnectionOptions) => Promise<NatsConnection> {
  return async (options) => {
    const nc = await connect(options);
    const request = nc.request.bind(nc);
    nc.request = async (subject, ...rest) => {
      const answer = await request(subject, ...rest);
      const changed = change(subject, json(answer));
      if (changed === undefined) return answer;
      return Object.create(answer, { data: { value: bytes(JSON.stringify(changed)) } });
    };
    return nc;
  };
}

/** The server says that it has copies on others. */
const replicated = (subject: string, answer: Answer): unknown => {
  const { config } = answer;
  return subject.includes("STREAM.INFO") ? { ...answer, config: { ...config, num_replicas: 3 } } : undefined;
};

const NO_MESSAGE = { error: { code: 404, err_code: 10_037, description: "no message found" } };
const WRONG_LAST = { error: { code: 400, err_code: 10_071, description: "wrong last sequence" } };

/** A leader that has nothing after an entry yet. */
const lacking = (last: () => number) =>
  answering((subject, { message }) => {
    if (subject.startsWith("agui.") && last() < Infinity) return WRONG_LAST;
    return subject.includes("STREAM.MSG.GET") && (message?.seq ?? 0) > last() ? NO_MESSAGE : undefined;
  });

test.each([0, 1])("a leader that has %i of two entries is asked again by whoever adds after them", async (has) => {
  const space = freshName();
  let lacksAfter = Infinity;
  const device = openSpace(servers, { space, connect: lacking(() => lacksAfter) });
  await until(device, "online");
  let last = 0;
  for (const id of ["a", "b"]) last = (await device.add("t", bytes(id), { last, id })) ?? 0;
  const reader = new Reader(device);
  lacksAfter = has;
  await expect(device.add("t", bytes("c"), { last, id: "c" })).rejects.toThrow(SpaceOffline);
  lacksAfter = Infinity;
  expect(await device.add("t", bytes("c"), { last, id: "c" })).toBe(3);
  await eventually(() => expect(reader.texts).toEqual(["a", "b", "c"]));
  // It is not the connection that is bad.
  expect(reader.begins).toHaveLength(1);
});

/** As anybody may write it, after the thread's last message. */
async function forge(space: string, thread: string, part: Part, body = "forged", before?: number): Promise<number> {
  const nc = await connect({ servers: servers.urls[0] ?? "" });
  onTestFinished(() => nc.close());
  const its = headers();
  its.set(PART_HEADER, encodePart(part));
  const after = before === undefined ? {} : { expect: { lastSubjectSequence: before } };
  return (await jetstream(nc).publish(`agui.${space}.t.${thread}`, body, { headers: its, ...after })).seq;
}

/** The first thing that a reader gets. */
async function begins(space: Space): Promise<Partial<Begins>> {
  for await (const frame of space.read(undefined, never)) if (frame.is === "begins") return frame;
  return {};
}

const never = new AbortController().signal;

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

test("of a thread that ends with what is not whole, the last entry is known, and nothing else is waited for", async () => {
  const name = freshName();
  const space = openSpace(servers, { space: name });
  await until(space, "online");
  const last = (await space.add("t", bytes("a"), { last: 0, id: "a" })) ?? 0;
  const end = await forge(name, "t", { number: 1, of: 2, base: last, key: "half" });
  const [entry] = await all<SpaceEntry>(space.lasts(never));
  expect(entry).toMatchObject({ thread: "t", seq: last, end, body: bytes("") });
  const waits: number[] = [];
  const clock = { ...systemClock, after: (ms: number) => Promise.resolve(void waits.push(ms)) };
  const whole = await all(
    wholeThread({ space, parts: { clock } }, { key: "t", upTo: entry?.seq ?? 0, after: 0 }, never),
  );
  expect([whole.map(({ seq }) => seq), waits]).toEqual([[last], []]);
  // Who does not say what it follows, or lies, says nothing of what is there.
  const liar = await forge(name, "u", { number: 1, of: 2, base: 1_000, key: "liar" });
  const other = await forge(name, "v", { number: 2, of: 2, base: last, key: "other" });
  expect((await all(space.lasts(never))).slice(1)).toMatchObject([
    { thread: "u", seq: 0, end: liar },
    { thread: "v", seq: 0, end: other },
  ]);
});

test("a function that never gives credentials is called again, and keeps no space from closing", async () => {
  let calls = 0;
  const given = new Promise<never>(() => undefined);
  const credentials = () => (++calls < 3 ? given : Promise.resolve({ user: "ann", password: "x" }));
  // Half a minute, and the next attempt, are not waited for.
  const clock: Clock = { ...systemClock, after: (ms, signal) => systemClock.after(Math.min(ms, 100), signal) };
  const device = openSpace(servers, { space: freshName(), credentials, clock });
  await until(device, "offline");
  await until(device, "online");
  expect(calls).toBe(3);
  const closed = openSpace(servers, { space: freshName(), credentials: () => given });
  await closed.close();
});

test("an entry whose parts the leader does not have yet is read again", async () => {
  const space = freshName();
  const writer = openSpace(servers, { space });
  await until(writer, "online");
  const body = large(1_200_000, 3);
  const first = (await writer.add("t", body, { last: 0, id: "large" })) ?? 0;
  expect(first).toBe(3);
  await writer.add("t", bytes("next"), { last: first, id: "next" });
  const { log = "" } = await begins(writer);
  let lacksAfter = 1;
  const reader = new Reader(openSpace(servers, { space, connect: lacking(() => lacksAfter) }), { log, seq: 2 });
  await eventually(() => expect(reader.begins.length).toBeGreaterThan(1));
  lacksAfter = Infinity;
  await eventually(() => expect(reader.entries.map(({ seq }) => seq)).toEqual([3, 4]));
  expect(Buffer.compare(reader.entries[0]?.body ?? bytes(""), body)).toBe(0);
});

describe.each([false, true])("in a log with copies (%s)", (isReplicated) => {
  const connecting = isReplicated ? answering(replicated) : connect;

  test("who writes a last part without the others keeps nobody from the thread", async () => {
    const space = freshName();
    const device = openSpace(servers, { space, connect: connecting });
    const reader = new Reader(device);
    await until(device, "online");
    const a = (await device.add("t", bytes("a"), { last: 0, id: "a" })) ?? 0;
    await forge(space, "t", { number: 2, of: 2, base: a, key: "x" });
    const b = (await device.add("t", bytes("b"), { last: a, id: "b" })) ?? 0;
    expect(b).toBe(a + 2);
    // Also behind a part of another entry.
    const half = await forge(space, "t", { number: 1, of: 2, base: b, key: "half" }, "h", b);
    await forge(space, "t", { number: 2, of: 2, base: b, key: "x" }, "x", half);
    const body = large(1_200_000, 3);
    const c = (await device.add("t", body, { last: b, id: "c" })) ?? 0;
    expect(c).toBe(half + 4);
    expect(await device.add("t", body, { last: b, id: "c" })).toBe(c);
    await eventually(() => expect(reader.entries.map(({ seq }) => seq)).toEqual([a, b, c]));
    expect((await all(device.entries("t", never))).map(({ seq }) => seq)).toEqual([a, b, c]);
  });
});

/** Some of its consumers get nothing of these messages, as of a copy that lacks them. */
function missing(seqs: readonly number[], isOfConsumer: (nth: number) => boolean) {
  let consumers = 0;
  return async (options: ConnectionOptions): Promise<NatsConnection> => {
    const nc = await answering(replicated)(options);
    const subscribe = nc.subscribe.bind(nc);
    nc.subscribe = (subject, given = {}) => {
      const { callback } = given;
      const isConsumer = subject.startsWith("_INBOX_") && !subject.endsWith("*");
      if (!isConsumer || callback === undefined || !isOfConsumer(++consumers)) return subscribe(subject, given);
      let count = 0;
      const heard: typeof callback = (error, msg) => {
        const tokens = msg.reply?.split(".") ?? [];
        if (msg.subject === subject) return callback(error, msg);
        if (seqs.includes(Number(tokens[5]))) return;
        tokens[6] = `${++count}`;
        callback(error, Object.create(msg, { reply: { value: tokens.join(".") } }));
      };
      return subscribe(subject, { ...given, callback: heard });
    };
    return nc;
  };
}

/** What a thread has beside others: its second entry is `b`, and does not come. */
async function written(space: string, device: Space): Promise<readonly number[]> {
  const t1 = (await device.add("t", bytes("a"), { last: 0, id: "a" })) ?? 0;
  const t2 = (await device.add("t", bytes("b"), { last: t1, id: "b" })) ?? 0;
  const u1 = (await device.add("u", bytes("u"), { last: 0, id: "u" })) ?? 0;
  // Two at once.
  const t3 = (await device.add("t", bytes("c"), { last: t2, id: "c" })) ?? 0;
  const late = await forge(space, "t", { number: 1, of: 1, base: t2, key: "late" });
  const t5 = (await device.add("t", bytes("d"), { last: t3, id: "d" })) ?? 0;
  expect(t5).toBe(late + 1);
  return [t1, t2, u1, t3, t5];
}

const hasty: Clock = { ...systemClock, after: (ms, signal) => systemClock.after(Math.min(ms, 50), signal) };

describe("what a server leaves out", () => {
  test.each([0, 1])("is read again, with nothing twice (by one who knows %i entries)", async (known) => {
    const space = freshName();
    const writer = openSpace(servers, { space, connect: answering(replicated) });
    await until(writer, "online");
    const { log = "" } = await begins(writer);
    const [t1, t2, ...rest] = await written(space, writer);
    const connecting = missing([t2 ?? 0], (nth) => nth <= 2);
    const device = openSpace(servers, { space, connect: connecting, clock: hasty });
    const reader = new Reader(device, known === 0 ? undefined : { log, seq: t1 ?? 0 });
    await eventually(() => expect(reader.texts.at(-1)).toBe("d"));
    expect(reader.texts).toEqual([...(known === 0 ? ["a"] : []), "u", "b", "c", "d"]);
    expect(reader.frames.filter(({ is }) => is !== "begins").at(-1)).toMatchObject({ seq: rest.at(-1) });
    expect(reader.begins).toHaveLength(3);
  });

  test("is no list of a thread", async () => {
    const space = freshName();
    const writer = openSpace(servers, { space, connect: answering(replicated) });
    await until(writer, "online");
    await written(space, writer);
    const device = openSpace(servers, { space, connect: missing([2], (nth) => nth === 1), clock: hasty });
    await until(device, "online");
    await expect(all(device.entries("t", never))).rejects.toThrow(SpaceOffline);
    await until(device, "online");
    expect((await all(device.entries("t", never))).map(({ body }) => text(body))).toEqual(["a", "b", "c", "d"]);
  });

  test.each([0, 1])("and never has is passed over with a warning (by one who knows %i entries)", async (known) => {
    const warnings = vi.spyOn(console, "warn").mockReturnValue(undefined);
    onTestFinished(() => warnings.mockRestore());
    const space = freshName();
    const device = openSpace(servers, { space, connect: missing([2], () => true), clock: hasty });
    await until(device, "online");
    const { log = "" } = await begins(device);
    await written(space, device);
    const reader = new Reader(device, known === 0 ? undefined : { log, seq: 1 });
    await eventually(() => expect(reader.texts.at(-1)).toBe("d"));
    expect(reader.texts).toEqual([...(known === 0 ? ["a"] : []), "u", "c", "d"]);
    expect(warnings).toHaveBeenCalledOnce();
  });

  test("because the log has lost it holds nobody up", async () => {
    const warnings = vi.spyOn(console, "warn").mockReturnValue(undefined);
    onTestFinished(() => warnings.mockRestore());
    const space = freshName();
    const { streams } = await managerOf(servers);
    await streams.add({ name: streamOf(space), subjects: [`agui.${space}.t.*`] });
    const device = openSpace(servers, { space, connect: answering(replicated), clock: hasty });
    await until(device, "online");
    await begins(device);
    const seqs = await written(space, device);
    await streams.deleteMessage(streamOf(space), seqs[1] ?? 0);
    const reader = new Reader(device);
    await eventually(() => expect(reader.texts).toEqual(["a", "u", "c", "d"]));
    expect(warnings).toHaveBeenCalledOnce();
    expect(await addSurely(device, "t", bytes("e"), { last: seqs.at(-1) ?? 0, id: "e" })).toBeDefined();
    await eventually(() => expect(reader.texts.at(-1)).toBe("e"));
    expect((await all(device.entries("t", never))).map(({ body }) => text(body))).toEqual(["a", "c", "d", "e"]);
  });

  test("is nothing where an entry only says that it follows another", async () => {
    const space = freshName();
    const device = openSpace(servers, { space, connect: answering(replicated) });
    const reader = new Reader(device);
    await until(device, "online");
    await written(space, device);
    const half = await forge(space, "t", { number: 1, of: 2, base: 6, key: "half" });
    for (const base of [5, half, 1_000]) await forge(space, "t", { number: 1, of: 1, base, key: `on${base}` });
    await device.add("t", bytes("e"), { last: 6, id: "e" });
    await eventually(() => expect(reader.texts).toEqual(["a", "b", "u", "c", "d", "e"]));
    expect(reader.begins).toHaveLength(1);
  });
});

/** A log of the same name, which has lost its entries and got others from the second one on. */
async function refill(space: string): Promise<void> {
  const { streams } = await managerOf(servers);
  await streams.delete(streamOf(space));
  const device = openSpace(servers, { space });
  let last = 0;
  for (const id of ["a", "x", "y", "z"]) last = (await addSurely(device, "t", bytes(id), { last, id })) ?? 0;
  expect(last).toBe(4);
}

const sameLog = answering((subject, answer) =>
  subject.includes("STREAM.INFO") && answer.config ? { ...answer, created: "2026-01-01T00:00:00Z" } : undefined,
);

describe("a log that was set back, and has got as much since", () => {
  test("is read anew by one who begins where it was, and by no other", async () => {
    const space = freshName();
    const writer = openSpace(servers, { space, connect: sameLog });
    await until(writer, "online");
    let last = 0;
    for (const id of ["a", "b", "c"]) last = (await writer.add("t", bytes(id), { last, id })) ?? 0;
    const before = new Reader(writer);
    await eventually(() => expect(before.texts).toEqual(["a", "b", "c"]));
    await before.stop();
    const { log = "" } = before.begins[0] ?? {};
    const places = before.entries.map(({ seq, mark }) => ({ log, seq, mark }));
    const on = new Reader(writer, places[1]);
    await eventually(() => expect(on.texts).toEqual(["c"]));
    await on.stop();
    await refill(space);
    const [early, late] = [places[0], places[2]].map((place) => {
      return new Reader(openSpace(servers, { space, connect: sameLog }), place);
    });
    await eventually(() => expect(early?.texts).toEqual(["x", "y", "z"]));
    expect(early?.begins).toEqual([{ is: "begins", log, last: 4 }]);
    await eventually(() => expect(late?.texts).toEqual(["a", "x", "y", "z"]));
    expect(late?.begins).toEqual([{ is: "begins", log, last: 2 }]);
  });

  test("is read anew by one who was cut off meanwhile", async () => {
    const space = freshName();
    let nc: NatsConnection | undefined;
    let mayConnect = Promise.resolve();
    const device = openSpace(servers, {
      space,
      clock: hasty,
      connect: async (options) => {
        await mayConnect;
        return (nc = await sameLog(options));
      },
    });
    const reader = new Reader(device);
    await until(device, "online");
    let last = 0;
    for (const id of ["a", "b", "c"]) last = (await device.add("t", bytes(id), { last, id })) ?? 0;
    await eventually(() => expect(reader.texts).toEqual(["a", "b", "c"]));
    let mend = (): void => undefined;
    mayConnect = new Promise((resolve) => (mend = resolve));
    await nc?.close();
    await refill(space);
    mend();
    await eventually(() => expect(reader.texts).toEqual(["a", "b", "c", "a", "x", "y", "z"]));
    expect(reader.begins.at(-1)?.last).toBe(2);
  });
});
