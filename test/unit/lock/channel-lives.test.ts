import { NEVER } from "rxjs";
import { expect, test } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import type { OpenChannel } from "../../../src/platform/channel.js";
import { livesChannelName } from "../../../src/platform/names.js";
import { ChannelWorld, LONG, SECOND_MS, secondsUntil, settled } from "./kit.js";

const never = new AbortController().signal;

/** The same channel, where what is posted arrives as often and in the order that `deliver` gives it. */
const meddled =
  (open: OpenChannel, deliver: (message: unknown, post: (message: unknown) => void) => unknown): OpenChannel =>
  (name) => {
    const channel = open(name);
    return { ...channel, post: (message) => deliver(message, (one) => channel.post(one)) };
  };

async function seconds(world: ChannelWorld, count: number): Promise<void> {
  for (let passed = 0; passed < count; passed++) await world.second();
}

test("a life ends after a long silence, and not before (L9)", async () => {
  const world = new ChannelWorld();
  const [dying, other] = [world.context(), world.context()];
  await dying.lives.hold("life");
  const ended = settled(other.lives.whenFree("life", never));
  await seconds(world, LONG);
  await dying.die();
  await seconds(world, 6);
  expect(ended()).toBe(false);
  expect(await secondsUntil(world, ended)).toBeLessThanOrEqual(4);
});

test("whoever begins to watch while others are asked for waits as long (L9)", async () => {
  const world = new ChannelWorld();
  const watcher = world.context();
  void watcher.lives.whenFree("other", never);
  await seconds(world, 1);
  const ended = settled(watcher.lives.whenFree("nobody", never));
  await seconds(world, 8);
  expect(ended()).toBe(false);
  expect(await secondsUntil(world, ended)).toBe(1);
});

test("a throttled holder answers, however long it is watched (L9)", async () => {
  const world = new ChannelWorld();
  const [throttled, other] = [world.context(), world.context()];
  throttled.is = "throttled";
  await throttled.lives.hold("life");
  const ended = settled(other.lives.whenFree("life", never));
  await seconds(world, LONG);
  expect(ended()).toBe(false);
});

test("a watcher that slept waits for what it has not heard yet (L9)", async () => {
  const world = new ChannelWorld();
  const [holder, sleeper] = [world.context(), world.context()];
  await holder.lives.hold("life");
  const ended = settled(sleeper.lives.whenFree("life", never));
  for (let naps = 0; naps < LONG; naps++) {
    sleeper.is = "frozen";
    await seconds(world, 10);
    await world.wake(sleeper, 10 * SECOND_MS);
    expect(ended()).toBe(false);
  }
  await seconds(world, LONG);
  expect(ended()).toBe(false);
  await holder.die();
  expect(await secondsUntil(world, ended)).toBeLessThan(LONG);
});

test("when everybody slept, the one that wakes first takes nobody for dead (L9)", async () => {
  const world = new ChannelWorld();
  const [holder, early] = [world.context(), world.context()];
  await holder.lives.hold("life");
  const ended = settled(early.lives.whenFree("life", never));
  holder.is = "frozen";
  // The last of the questions that count has been asked; the second that is left for its answer is slept away.
  await seconds(world, 7);
  early.is = "frozen";
  await world.wake(early, 60 * SECOND_MS);
  expect(ended()).toBe(false);
  await world.wake(holder, 60 * SECOND_MS);
  await seconds(world, LONG);
  expect(ended()).toBe(false);
});

test("doubled, late and reordered messages change nothing; a release that is lost costs the silence (L13)", async () => {
  const world = new ChannelWorld();
  const kept: unknown[] = [];
  const openChannel = meddled(world.openChannel, (message, post) => {
    if ((message as { type: string }).type === "released") return;
    kept.push(message, message);
    // Two at a time, the later first.
    if (kept.length >= 4) for (const late of kept.splice(0).toReversed()) post(late);
  });
  const [holder, other] = [world.context({ openChannel }), world.context()];
  const life = await holder.lives.hold("life");
  const ended = settled(other.lives.whenFree("life", never));
  await seconds(world, LONG);
  expect(ended()).toBe(false);
  await life.release();
  expect(await secondsUntil(world, ended)).toBeLessThan(LONG);
});

test.each<[string, unknown]>([
  ["no object", "released"],
  ["null", null],
  ["another version", { v: 2, type: "released", names: ["life"] }],
  ["an unknown type", { v: 1, type: "dead", names: ["life"] }],
  ["names that are no list", { v: 1, type: "released", names: "life" }],
  ["names that are no text", { v: 1, type: "released", names: ["life", 7] }],
  ["no names", { v: 1, type: "released" }],
  ["another name", { v: 1, type: "released", names: ["life2"] }],
])("foreign and malformed messages are not heard: %s", async (_, message) => {
  const world = new ChannelWorld();
  const [holder, other] = [world.context(), world.context()];
  await holder.lives.hold("life");
  const ended = settled(other.lives.whenFree("life", never));
  const stranger = world.openChannel(livesChannelName);
  for (let times = 0; times < 3; times++) {
    stranger.post(message);
    await world.second();
  }
  expect(ended()).toBe(false);
});

test("a forged end is believed by who watches, and changes nothing for the holder", async () => {
  const world = new ChannelWorld();
  const [holder, other] = [world.context(), world.context()];
  const life = await holder.lives.hold("life");
  const gone = settled(life.gone);
  const ended = other.lives.whenFree("life", never);
  world.openChannel(livesChannelName).post({ v: 1, type: "released", names: ["life"] });
  expect(await ended).toBe(true);
  const again = settled(other.lives.whenFree("life", never));
  await seconds(world, LONG);
  expect([gone(), again()]).toEqual([false, false]);
});

test("a holder says nothing unasked; all that is watched is one question, and each answer names only what was asked", async () => {
  const world = new ChannelWorld();
  const [holder, other] = [world.context(), world.context()];
  const heard: unknown[] = [];
  world.openChannel(livesChannelName).messages$.subscribe((message) => heard.push(message));
  for (const name of ["one", "two", "three"]) await holder.lives.hold(name);
  await seconds(world, LONG);
  expect(heard).toEqual([]);
  void other.lives.whenFree("one", never);
  void other.lives.whenFree("two", never);
  void other.lives.whenFree("two", never);
  await seconds(world, 2);
  heard.splice(0);
  await seconds(world, 2);
  expect(heard).toEqual([
    { v: 1, type: "who", names: ["one", "two"] },
    { v: 1, type: "lives", names: ["one", "two"] },
  ]);
});

test("hosts of an earlier build, who also say unasked that they live, are heard, and so is their end", async () => {
  const world = new ChannelWorld();
  const watcher = world.context();
  const ended = settled(watcher.lives.whenFree("life", never));
  const former = world.openChannel(livesChannelName);
  for (let passed = 0; passed < LONG; passed++) {
    former.post({ v: 1, type: "lives", names: ["life"] });
    await world.second();
  }
  expect(ended()).toBe(false);
  former.post({ v: 1, type: "released", names: ["life"] });
  await nextTask();
  expect(ended()).toBe(true);
});

test("where nothing is watched any more, no timer is left after one more question's time", async () => {
  const world = new ChannelWorld();
  const context = world.context();
  await context.lives.hold("life");
  expect(context.clock.waiting).toBe(0);
  const given = new AbortController();
  void context.lives.whenFree("other", given.signal);
  expect(context.clock.waiting).toBe(1);
  given.abort();
  await seconds(world, 2);
  expect(context.clock.waiting).toBe(0);
});

test("closed, it has let go of everything, and waits for nothing", async () => {
  const world = new ChannelWorld();
  const [one, other] = [world.context(), world.context()];
  const life = await one.lives.hold("life");
  const freed = other.lives.whenFree("life", never);
  const watching = one.lives.whenFree("other", never);
  one.lives.close?.();
  await life.gone;
  expect([await freed, await watching, await one.lives.whenFree("other", never)]).toEqual([true, false, false]);
});

test("where the channel carries nothing, a living holder is taken for dead, which is all that it comes to", async () => {
  const world = new ChannelWorld(() => ({ post: () => undefined, messages$: NEVER, close: () => undefined }));
  const [holder, other] = [world.context(), world.context()];
  const life = await holder.lives.hold("life");
  const gone = settled(life.gone);
  const ended = settled(other.lives.whenFree("life", never));
  expect(await secondsUntil(world, ended)).toBeLessThan(LONG);
  expect(gone()).toBe(false);
});
