import { expect, onTestFinished, test, vi } from "vitest";
import type { SpaceFrame, SpacePlace } from "../../../src/sync/space.js";
import { agentOf, counter, gated } from "../runner/kit.js";
import { deviceOn, device, inStep, MemoryServer, say, sayNow, statusOf } from "./kit.js";
import { MemorySpace } from "./memory-space.js";

/*
 * One device, one thread or one attempt fails: nothing else does.
 */

const eventually = (check: () => Promise<void> | void) => vi.waitFor(check, { timeout: 10_000, interval: 5 });

/** To whoever reads by it, entries are of a newer version from some time on. */
class NewerSpace extends MemorySpace {
  isNewer = false;

  override async *read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void> {
    for await (const frame of super.read(after, signal)) {
      if (frame.is === "entry" && this.isNewer) yield { ...frame, body: new TextEncoder().encode('{"v":99}') };
      else yield frame;
    }
  }
}

test("a device that has become outdated says that it leaves: its live run holds no thread any more", async () => {
  const server = new MemoryServer();
  const space = new NewerSpace(server);
  const phone = deviceOn(space, "Phone");
  onTestFinished(phone.close);
  const laptop = device(server, "Laptop");
  await inStep(phone, laptop);
  const { gate } = gated();
  void sayNow(phone, "t", "r1", agentOf(counter(3, () => gate)));
  await eventually(async () => expect(await laptop.runner.isRunning({ threadId: "t" })).toBe(true));
  space.isNewer = true;
  await say(laptop, "u", "r1", agentOf(counter(1)));
  await eventually(async () => expect(await statusOf(phone)).toMatchObject({ is: "refused" }));
  await eventually(async () => expect((await statusOf(laptop)).devices).toMatchObject([{ name: "Laptop" }]));
  await say(laptop, "t", "r2", agentOf(counter(1)));
  expect(await laptop.runner.getRun("r1", { threadId: "t" })).toMatchObject({ status: "broken" });
  // Whoever connects anew asks all devices.
  const tablet = device(server, "Tablet");
  await inStep(tablet);
  await eventually(async () => expect((await statusOf(laptop)).devices).toHaveLength(2));
  expect((await statusOf(tablet)).devices.map(({ name }) => name)).not.toContain("Phone");
});
