import { expect, onTestFinished, test } from "vitest";
import type { SpaceEntry, SpaceFrame, SpacePlace } from "../../../src/sync/space.js";
import { KEYS_THREAD } from "../../../src/sync/thread-key.js";
import { agentOf, counter } from "../runner/kit.js";
import { device, deviceOn, eventually, inStep, MemoryServer, say, shown, tree, withKey, same } from "./kit.js";
import { MemorySpace } from "./memory-space.js";

/*
 * A server leaves out an entry of a thread: what comes behind it says which one it follows.
 */

class Leaking extends MemorySpace {
  readonly reads: string[] = [];
  missing = Infinity;
  /** Also where it is read again. */
  isLost = false;

  override async *read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void> {
    for await (const frame of super.read(after, signal)) {
      if (frame.is !== "entry" || frame.seq !== this.missing) yield frame;
    }
  }

  override async *entries(thread: string, signal: AbortSignal, after?: number): AsyncGenerator<SpaceEntry, void> {
    if (thread !== KEYS_THREAD) this.reads.push(thread);
    for await (const entry of super.entries(thread, signal, after)) {
      if (!this.isLost || entry.seq !== this.missing) yield entry;
    }
  }
}

async function begun() {
  const server = new MemoryServer();
  const phone = device(server, "Phone", withKey());
  const space = new Leaking(server);
  const laptop = deviceOn(space, "Laptop", withKey());
  onTestFinished(laptop.close);
  await inStep(phone, laptop);
  await say(phone, "t", "r1", agentOf(counter(3)));
  await eventually(async () => expect(await shown(laptop, "t")).toEqual(await shown(phone, "t")));
  await eventually(async () => expect(JSON.stringify(await tree(laptop, "t"))).not.toContain("running"));
  return { server, phone, space, laptop };
}

test("an entry that was left out is read with the whole thread, once", async () => {
  const { server, phone, space, laptop } = await begun();
  space.missing = server.last + 1;
  await phone.runner.updateThread("t", { title: "Named" });
  await eventually(() => expect(server.last).toBe(space.missing));
  await say(phone, "t", "r2", agentOf(counter(3)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  await same("t", laptop, phone);
  expect(await laptop.runner.getThread("t")).toMatchObject({ title: "Named" });
  expect(space.reads).toHaveLength(1);
});

test("where the servers have lost it, the thread goes on, with a warning, and is not read again and again", async () => {
  const { server, phone, space, laptop } = await begun();
  space.missing = server.last + 1;
  await phone.runner.updateThread("t", { title: "Lost" });
  await eventually(() => expect(server.last).toBe(space.missing));
  space.isLost = true;
  await phone.runner.updateThread("t", { archived: true });
  await eventually(() => expect(laptop.said.join()).toContain("the space lacks what was added to it"));
  await say(phone, "t", "r2", agentOf(counter(3)));
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  await say(laptop, "t", "r3", agentOf(counter(3)));
  await eventually(async () => expect(await shown(phone, "t")).toEqual(await shown(laptop, "t")));
  expect(space.reads).toHaveLength(1);
  expect(laptop.said.filter((line) => line.includes("the space lacks"))).toHaveLength(1);
});
