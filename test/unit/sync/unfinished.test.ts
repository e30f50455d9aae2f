import { expect, onTestFinished, test, vi } from "vitest";
import { type SpaceEntry, type SpaceFrame, type SpacePlace } from "../../../src/sync/space.js";
import { agentOf, counter } from "../runner/kit.js";
import { deviceOn, inStep, makeDevice, MemoryServer, say, shown, types } from "./kit.js";
import { MemorySpace } from "./memory-space.js";

/*
 * The last message of a log is a part of an entry that was never completed.
 */

const NOTHING = new Uint8Array();

class HalfSpace extends MemorySpace {
  /** Which threads were read. */
  readonly reads: string[] = [];

  override async *read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void> {
    const end = this.server.last + 1;
    for await (const frame of super.read(after, signal)) {
      yield frame.is === "begins" ? { ...frame, last: end } : frame;
      if (frame.is === "begins" && after?.seq === end) continue;
      if (frame.is === "entry" && frame.seq === end - 1) yield { is: "passed", seq: end };
    }
  }

  override async *lasts(signal: AbortSignal): AsyncGenerator<SpaceEntry, void> {
    for await (const entry of super.lasts(signal)) yield { ...entry, body: NOTHING, end: this.server.last + 1 };
  }

  override async *entries(thread: string, signal: AbortSignal, after?: number): AsyncGenerator<SpaceEntry, void> {
    this.reads.push(thread);
    yield* super.entries(thread, signal, after);
  }
}

test.each(["all", "opened"] as const)("a device that is new in it has the thread at once (keep: %s)", async (keep) => {
  const server = new MemoryServer();
  const first = makeDevice(server, "First");
  onTestFinished(first.close);
  await inStep(first);
  await say(first, "t", "r1", agentOf(counter(3)));
  await vi.waitFor(() => expect(types(server)).toContain("end"));
  const space = new HalfSpace(server);
  const next = deviceOn(space, "Next", { keep });
  onTestFinished(next.close);
  await inStep(next);
  await vi.waitFor(async () => expect(await shown(next, "t")).toEqual(await shown(first, "t")));
  // Once for how it is listed, once for what is in it: nothing is waited for that nobody will get.
  expect(space.reads.length).toBeLessThanOrEqual(2);
  await say(next, "t", "r2", agentOf(counter(2)));
  await vi.waitFor(async () => expect(await shown(first, "t")).toEqual(await shown(next, "t")));
});
