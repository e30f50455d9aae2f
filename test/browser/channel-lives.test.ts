import { expect, onTestFinished, test } from "vitest";
import { ChannelLives } from "../../src/platform/channel-lives.js";
import { DrivenClock } from "../unit/lock/driven-clock.js";
import { ChannelWorld, SECOND_MS, settled } from "../unit/lock/kit.js";
import { describeLives } from "../unit/lock/lives.suite.js";
import { openBroadcastChannel } from "../../src/platform/channel.js";

describeLives("lives over the browser's channel", () => {
  const world = `${crypto.randomUUID()}:`;
  return new ChannelWorld((name) => openBroadcastChannel(world + name), roundTrip);
});

test("a throttled context says over the real channel that it lives, when it is asked (L9)", async () => {
  const clock = new DrivenClock();
  const watcher = new ChannelLives({ clock });
  const throttled = new ChannelLives({ clock: new DrivenClock() });
  onTestFinished(() => {
    for (const each of [watcher, throttled]) each.close();
  });
  await throttled.hold("life");
  const ended = settled(watcher.whenFree("life", new AbortController().signal));
  for (let seconds = 0; seconds < 30; seconds++) {
    clock.pass(SECOND_MS);
    await roundTrip();
  }
  expect(ended()).toBe(false);
});

/** Long enough for a question and its answer: channels of one context deliver in the order of the posts. */
async function roundTrip(): Promise<void> {
  const name = `round-trip-${crypto.randomUUID()}`;
  const [one, other] = [new BroadcastChannel(name), new BroadcastChannel(name)];
  const back = new Promise<void>((resolve) => (one.onmessage = () => resolve()));
  other.onmessage = () => other.postMessage("back");
  one.postMessage("there");
  await back;
  one.close();
  other.close();
}
