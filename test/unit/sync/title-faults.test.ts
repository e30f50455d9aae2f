import { expect, onTestFinished, test, vi } from "vitest";
import { compact } from "../../../src/sync/compaction.js";
import { encodeMessage, messageIn } from "../../../src/sync/messages.js";
import type { SpaceFrame, SpacePlace } from "../../../src/sync/space.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { agentOf, counter, gated } from "../runner/kit.js";
import { device, deviceOn, eventually, inStep, lineOf, MemoryServer, passes, say, sayOffline, types } from "./kit.js";
import { MemorySpace } from "./memory-space.js";

const story = (space: MemoryServer): string => space.entries.flatMap(lineOf).join("\n");
const count = (space: MemoryServer, type: string): number => types(space).filter((one) => one === type).length;

/** Entries from this one on come when they are let on. */
class Slow extends MemorySpace {
  from = Infinity;
  on: Promise<void> = Promise.resolve();
  override async *read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void> {
    for await (const frame of super.read(after, signal)) {
      if (frame.is === "entry" && frame.seq >= this.from) await this.on;
      yield frame;
    }
  }
}

test("a title of another device stays where the entries behind it are joined while this one reads them", async () => {
  const space = new MemoryServer();
  const phone = deviceOn(new Slow(space), "Phone");
  onTestFinished(phone.close);
  const laptop = device(space, "Laptop");
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(2)));
  await phone.runner.updateThread("t", { title: "Old" });
  const titleAt = async (one: Pick<typeof phone, "runner">) => (await one.runner.listThreads())[0]?.title;
  await eventually(async () => expect(await titleAt(laptop)).toBe("Old"));
  const before = count(space, "thread");
  phone.space.connect(false);
  await sayOffline(laptop, "t", "r2", agentOf(counter(2)));
  await eventually(() => expect(count(space, "end")).toBe(2));
  await laptop.runner.updateThread("t", { title: "New" });
  await eventually(() => expect(count(space, "thread")).toBe(before + 1));
  phone.space.from = space.last;
  await laptop.runner.updateThread("t", { pinned: true });
  await eventually(() => expect(count(space, "thread")).toBe(before + 2));
  const key = await keyOfThread("t");
  const { entries: read, last: upTo } = space;
  const joined = compact(read.map(({ seq, body }) => ({ seq, message: messageIn({ seq, body }, "t") })));
  const ghost = { threadId: "t", device: { id: "ghost", name: "Ghost" } };
  space.add(key, encodeMessage({ type: "whole", upTo, entries: joined!.entries, ...ghost }), upTo, "whole");
  // The phone gets the new title, and what is behind it is removed before it gets that.
  space.entries = space.entries.filter(({ seq }) => seq !== upTo);
  const [placed, more] = [gated(), gated()];
  phone.space.on = more.gate;
  const { store } = phone;
  const { placeRun } = store;
  const placing = vi.spyOn(store, "placeRun").mockImplementation(async (...of) => {
    await placed.gate;
    return placeRun.apply(store, of);
  });
  phone.space.connect(true);
  await eventually(() => expect(placing).toHaveBeenCalled());
  more.letOn();
  await passes(300);
  space.remove(key, upTo + 1);
  placed.letOn();
  await inStep(phone);
  // It would be told by now.
  await passes(1_000);
  await eventually(async () =>
    expect([await titleAt(phone), await titleAt(laptop)], story(space)).toEqual(["New", "New"]),
  );
});
