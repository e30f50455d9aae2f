import { NEVER } from "rxjs";
import { expect, test } from "vitest";
import { claimThread } from "../../../src/lock/claim.js";
import { nextTask } from "../../../src/platform/clock.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { locksOf } from "../../../src/platform/locks.js";
import { threadLockName } from "../../../src/platform/names.js";

/** A claim of a thread that is settling, with what happens when its host has looked at the thread's row so often. */
function claimWhileSettling(onLook: (looks: number, settled: () => Promise<void>) => Promise<void>) {
  const locks = locksOf(inProcessLockManager());
  const settling = locks.tryHold(threadLockName("db", "t"));
  let time = 0;
  let looks = 0;
  const clock = {
    now: () => time,
    elapsed: () => time,
    after: (ms: number) => nextTask().then(() => void (time += ms)),
  };
  const head = async () => {
    await onLook(++looks, async () => (await settling)!.release());
    return undefined;
  };
  const channel = { messages$: NEVER, post: () => undefined, close: () => undefined };
  return {
    freeze: (ms: number) => void (time += ms),
    lock: claimThread({ dbName: "db", hostId: "h", locks, channel, store: { head }, clock }, "t", "r"),
  };
}

test("a claim whose host was frozen while the thread was settling finds it free when it wakes (L5)", async () => {
  const claim = claimWhileSettling(async (looks, settled) => {
    if (looks < 2) return;
    claim.freeze(60_000);
    await settled();
  });
  await expect(claim.lock).resolves.toHaveProperty("gone");
});

test("a claim of a thread that never settles is refused (L13)", async () => {
  const claim = claimWhileSettling(() => Promise.resolve());
  await expect(claim.lock).rejects.toMatchObject({ code: "thread-busy", details: { threadId: "t" } });
});
