import { Subject } from "rxjs";
import { expect, onTestFinished, test } from "vitest";
import { beatLives } from "../../../src/platform/beats.js";
import { nextTask } from "../../../src/platform/clock.js";
import type { OpenChannel } from "../../../src/platform/channel.js";
import { inProcessChannels } from "../../../src/platform/in-process-channel.js";
import { beatChannelName } from "../../../src/platform/names.js";
import { DrivenClock } from "./driven-clock.js";
import { LONG, SECOND_MS, settled } from "./kit.js";

const never = new AbortController().signal;

/** A context that watches and holds lives, at a time of its own. */
function context(openChannel: OpenChannel) {
  const clock = new DrivenClock();
  const lives = beatLives({ clock, openChannel });
  onTestFinished(() => lives.close());
  return { lives, clock };
}

async function seconds(count: number, ...clocks: readonly DrivenClock[]): Promise<void> {
  for (let passed = 0; passed < count; passed++) {
    for (const clock of clocks) clock.pass(SECOND_MS);
    await nextTask();
  }
}

/** The same channel, where what is posted arrives as often and in the order that `deliver` gives it. */
const meddled =
  (open: OpenChannel, deliver: (message: unknown, post: (message: unknown) => void) => unknown): OpenChannel =>
  (name) => {
    const channel = open(name);
    return { ...channel, post: (message) => deliver(message, (one) => channel.post(one)) };
  };

test("a life ends after a long silence, and not before (L9)", async () => {
  const open = inProcessChannels();
  let dead = false;
  const dying = context(meddled(open, (message, post) => dead || post(message)));
  const other = context(open);
  await dying.lives.hold("life");
  const ended = settled(other.lives.whenFree("life", never));
  await seconds(LONG, dying.clock, other.clock);
  dead = true;
  await seconds(7, other.clock);
  expect(ended()).toBe(false);
  await seconds(1, other.clock);
  expect(ended()).toBe(true);
});

test("a watcher that was blocked waits for what it has not heard yet (L9)", async () => {
  const hub = new Subject<unknown>();
  const clock = new DrivenClock();
  const lives = beatLives({
    clock,
    openChannel: () => ({ post: () => undefined, messages$: hub, close: () => undefined }),
  });
  onTestFinished(() => lives.close());
  const ended = settled(lives.whenFree("life", never));
  await seconds(7, clock);
  // Blocked: its timer comes before the beats that were said meanwhile.
  clock.pass(60 * SECOND_MS);
  await nextTask();
  expect(ended()).toBe(false);
  hub.next({ v: 1, type: "lives", names: ["life"] });
  await seconds(7, clock);
  expect(ended()).toBe(false);
  await seconds(1, clock);
  expect(ended()).toBe(true);
});

test("doubled, late and reordered beats change nothing; a release that is lost costs the silence (L13)", async () => {
  const open = inProcessChannels();
  const kept: unknown[] = [];
  const holder = context(
    meddled(open, (message, post) => {
      if ((message as { type: string }).type === "released") return;
      kept.push(message, message);
      // Two at a time, the later first.
      if (kept.length >= 4) for (const late of kept.splice(0).toReversed()) post(late);
    }),
  );
  const other = context(open);
  const life = await holder.lives.hold("life");
  const ended = settled(other.lives.whenFree("life", never));
  await seconds(LONG, holder.clock, other.clock);
  expect(ended()).toBe(false);
  await life.release();
  await seconds(LONG, holder.clock, other.clock);
  expect(ended()).toBe(true);
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
  const open = inProcessChannels();
  const [holder, other] = [context(open), context(open)];
  await holder.lives.hold("life");
  const ended = settled(other.lives.whenFree("life", never));
  const stranger = open(beatChannelName);
  const answers: unknown[] = [];
  stranger.messages$.subscribe((answer) => answers.push(answer));
  await nextTask();
  for (let times = 0; times < 3; times++) {
    stranger.post(message);
    await seconds(1, holder.clock, other.clock);
  }
  expect(ended()).toBe(false);
  // The beat of each second, and no other.
  expect(answers).toHaveLength(3);
});

test("a forged end is believed by who watches, and changes nothing for the holder", async () => {
  const open = inProcessChannels();
  const [holder, other] = [context(open), context(open)];
  const life = await holder.lives.hold("life");
  const gone = settled(life.gone);
  const ended = other.lives.whenFree("life", never);
  open(beatChannelName).post({ v: 1, type: "released", names: ["life"] });
  expect(await ended).toBe(true);
  const again = settled(other.lives.whenFree("life", never));
  await seconds(LONG, holder.clock, other.clock);
  expect([gone(), again()]).toEqual([false, false]);
});

test("one message a second says all that a context holds", async () => {
  const open = inProcessChannels();
  const { lives, clock } = context(open);
  for (const name of ["one", "two", "three"]) await lives.hold(name);
  await nextTask();
  const heard: unknown[] = [];
  open(beatChannelName).messages$.subscribe((message) => heard.push(message));
  await seconds(2, clock);
  expect(heard).toEqual(Array.from({ length: 2 }, () => ({ v: 1, type: "lives", names: ["one", "two", "three"] })));
});
