import { describe, expect, onTestFinished, test } from "vitest";
import { openBroadcastChannel, type Channel, type OpenChannel } from "../../../src/platform/channel.js";
import { inProcessChannels } from "../../../src/platform/in-process-channel.js";

let names = 0;

describe.each<[string, () => OpenChannel]>([
  ["BroadcastChannel", () => openBroadcastChannel],
  ["channels within one process", inProcessChannels],
])("%s", (_, world) => {
  /** Channels of one name that write down what they hear. */
  function opened(count: number): { channel: Channel; heard: unknown[] }[] {
    const open = world();
    const name = `channel-${++names}`;
    return Array.from({ length: count }, () => {
      const channel = open(name);
      const heard: unknown[] = [];
      channel.messages$.subscribe((message) => heard.push(message));
      onTestFinished(() => channel.close());
      return { channel, heard };
    });
  }
  const delivered = (heard: unknown[], count: number): Promise<void> =>
    expect.poll(() => heard.length).toBeGreaterThanOrEqual(count);

  test("all others hear, in the order of the sender; the sender does not", async () => {
    const [a, b, c] = opened(3);
    for (let n = 0; n < 3; n++) a!.channel.post({ n });
    await delivered(b!.heard, 3);
    await delivered(c!.heard, 3);
    expect([a!.heard, b!.heard, c!.heard]).toEqual([[], [0, 1, 2].map((n) => ({ n })), [0, 1, 2].map((n) => ({ n }))]);
  });

  test("nobody hears before the call has returned", async () => {
    const [a, b] = opened(2);
    a!.channel.post("later");
    expect(b!.heard).toEqual([]);
    await delivered(b!.heard, 1);
  });

  test("each gets a copy of what was posted, at the time of the call", async () => {
    const [a, b, c] = opened(3);
    const message = { text: "as posted" };
    a!.channel.post(message);
    message.text = "changed";
    await delivered(b!.heard, 1);
    await delivered(c!.heard, 1);
    expect(b!.heard).toEqual([{ text: "as posted" }]);
    expect(b!.heard[0]).not.toBe(c!.heard[0]);
  });

  test("what cannot be cloned is told to the sender, whoever listens", () => {
    const [a] = opened(1);
    expect(() => a!.channel.post(() => 1)).toThrow(expect.objectContaining({ name: "DataCloneError" }));
  });

  test("after close nothing is heard and nothing sent, and nothing throws", async () => {
    const [a, b, c] = opened(3);
    b!.channel.close();
    a!.channel.post("to the others");
    c!.channel.close();
    c!.channel.post("never");
    b!.channel.close();
    // What would have come has come when a later message of others has.
    const [sender, witness] = opened(2);
    sender!.channel.post("sign");
    await delivered(witness!.heard, 1);
    expect([a!.heard, b!.heard, c!.heard]).toEqual([[], [], []]);
  });

  test("who stops listening hears nothing more, and who listens again hears what comes then", async () => {
    const [a, b, witness] = opened(3);
    const [, silent] = opened(2);
    const heard: unknown[] = [];
    const listen = () => b!.channel.messages$.subscribe((message) => heard.push(message));
    listen().unsubscribe();
    a!.channel.post("while nobody listened here");
    await delivered(witness!.heard, 1);
    const listening = listen();
    a!.channel.post("again");
    await delivered(heard, 1);
    listening.unsubscribe();
    a!.channel.post("after");
    await delivered(witness!.heard, 3);
    expect(heard).toEqual(["again"]);
    expect(silent!.heard).toEqual([]);
  });

  test("another name hears nothing", async () => {
    const [a, b] = opened(2);
    const [other] = opened(1);
    a!.channel.post("here");
    await delivered(b!.heard, 1);
    expect(other!.heard).toEqual([]);
  });
});

test("worlds within one process do not hear each other", async () => {
  const [one, other] = [inProcessChannels(), inProcessChannels()];
  const heard: unknown[] = [];
  other("name").messages$.subscribe((message) => heard.push(message));
  const inside: unknown[] = [];
  one("name").messages$.subscribe((message) => inside.push(message));
  one("name").post("inside");
  await expect.poll(() => inside).toEqual(["inside"]);
  expect(heard).toEqual([]);
});
