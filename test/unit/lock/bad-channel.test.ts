import { EventType } from "@ag-ui/client";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import type { LockMessage } from "../../../src/lock/protocol.js";
import { inProcessChannels } from "../../../src/platform/in-process-channel.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import type { HeldLock, Locks } from "../../../src/platform/locks.js";
import { hostChannelName } from "../../../src/platform/names.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { Frame } from "../../../src/wire/shapes.js";
import { FAULTS, type Fault, faultyChannel } from "../../tabs/hammer-channel.js";
import { randomFrom } from "../../tabs/hammer-random.js";
import {
  agentOf,
  collect,
  counted,
  counter,
  eventsOfFrame,
  fastClock,
  framesUntil,
  freshDb,
  inputOf,
  makeRunner,
  mortalLocks,
  rebuild,
  replay,
  silent,
} from "../runner/kit.js";

/** What is waited for comes by the backstops, which are seconds of the runners' time. */
const PATIENCE = { interval: 5 };

/** Its holder is not told when it is gone: a dead one hears nothing. */
const unaware = (lock: HeldLock | undefined): HeldLock | undefined =>
  lock && { ...lock, gone: new Promise<void>(() => undefined) };

/** Two hosts of one database whose messages meet with the fault. */
function twoHosts(fault: Fault, options: Parameters<typeof makeRunner>[0] = {}) {
  const dbName = freshDb();
  const manager = inProcessLockManager();
  const open = inProcessChannels();
  const random = randomFrom(inject("propertySeed"));
  const clock = fastClock(20);
  const host = () => {
    const { locks: mortal, die } = mortalLocks(manager);
    const locks: Locks = { ...mortal, tryHold: async (name) => unaware(await mortal.tryHold(name)) };
    const openChannel = faultyChannel(open, fault, random, clock);
    return { die, runner: makeRunner({ dbName, locks, clock, openChannel, stopGraceMs: 500, ...options }) };
  };
  return { one: host(), other: host() };
}

/** An agent that waits in the middle of its numbers. */
function halted(): { readonly agent: ReturnType<typeof agentOf>; readonly goOn: () => void } {
  let goOn!: () => void;
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  return { agent: agentOf(counter(20, (step) => (step === 10 ? gate : undefined))), goOn };
}

/** Resolves once the log of the thread has a live run for this runner. */
const running = (runner: LocalAgentRunner): Promise<void> =>
  vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true), PATIENCE);

/** The thread takes a run of each. */
async function expectFree(...runners: LocalAgentRunner[]): Promise<void> {
  for (const [index, runner] of runners.entries()) {
    await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", `next-${index}`) }));
  }
}

describe.each(FAULTS)("a channel that %s", (fault) => {
  test("a run is followed in the other host from its first event to its end (L2)", async () => {
    const { one, other } = twoHosts(fault);
    // Who looks late gets the whole run at once.
    const isWhole = (frame: Frame): boolean =>
      frame.type === "settled" || (frame.type === "prelude" && frame.live === undefined);
    const following = framesUntil(other.runner, { threadId: "t", follow: true }, isWhole);
    const { agent, goOn } = halted();
    const run = collect(one.runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    await running(other.runner);
    goOn();
    await run;
    const { messages } = await rebuild((await following).flatMap(eventsOfFrame));
    expect(messages).toEqual((await rebuild(await replay(one.runner, "t"))).messages);
    expect(messages.at(-1)).toMatchObject({ content: counted(20) });
  });

  test("a second run is refused while the first goes on (L5)", async () => {
    const { one, other } = twoHosts(fault);
    const { agent, goOn } = halted();
    const run = collect(one.runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    await running(other.runner);
    const started = vi.fn();
    const second = agentOf(async function* () {
      started();
      yield* [];
    });
    for (let n = 0; n < 5; n++) {
      const refused = collect(other.runner.run({ threadId: "t", agent: second, input: inputOf("t", `second-${n}`) }));
      await expect(refused).rejects.toMatchObject({ code: "thread-busy", message: "Thread already running" });
    }
    expect(started).not.toHaveBeenCalled();
    goOn();
    expect((await run).at(-1)).toMatchObject({ type: EventType.RUN_FINISHED });
    await expectFree(other.runner, one.runner);
  });

  test("a stop of the other host ends the run (L7, L11)", async () => {
    const { one, other } = twoHosts(fault);
    const run = collect(one.runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") }));
    await running(other.runner);
    expect(await other.runner.stop({ threadId: "t", runId: "r" })).toBe(true);
    expect((await run).at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, outcome: { type: "cancelled" } });
    await expectFree(other.runner, one.runner);
  });

  test("the run of a host that dies is broken, once, and keeps what it had (L9)", async () => {
    const { one, other } = twoHosts(fault);
    const cut = collect(one.runner.run({ threadId: "t", agent: halted().agent, input: inputOf("t", "r") }));
    await vi.waitFor(async () => expect(await one.runner.getRunEvents("r")).toHaveLength(12), PATIENCE);
    const followed = framesUntil(other.runner, { threadId: "t" });
    await running(other.runner);
    await one.die();
    const ends = (await followed).flatMap(eventsOfFrame).filter(({ type }) => type === EventType.RUN_ERROR);
    expect(ends).toMatchObject([{ code: "RUN_BROKEN" }]);
    expect((await cut).at(-1)).toMatchObject({ code: "RUN_BROKEN" });
    expect((await rebuild(await replay(other.runner, "t"))).messages.at(-1)).toMatchObject({ content: counted(10) });
    await expectFree(other.runner);
  });

  test("a run that waits for its turn gets it when the other host's run has ended (L7)", async () => {
    const { one, other } = twoHosts(fault, { onConcurrentRun: "queue" });
    const { agent, goOn } = halted();
    const first = collect(one.runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    await running(other.runner);
    const second = collect(
      other.runner.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", "waits") }),
    );
    goOn();
    await Promise.all([first, second]);
    const runs = await other.runner.listRuns("t");
    expect(runs).toMatchObject([
      { runId: "waits", status: "finished" },
      { runId: "r", status: "finished" },
    ]);
  });
});

describe("a forged receipt", () => {
  for (const type of ["stop-ack", "ended"] as const) {
    test(`(${type}) of a stop does not keep a frozen holder in its place (L6, L7, L11)`, async () => {
      const dbName = freshDb();
      const { locks } = mortalLocks();
      const open = inProcessChannels();
      // Its clock stands still and it hears nothing.
      const frozen = makeRunner({
        dbName,
        locks,
        openChannel: faultyChannel(open, "deafens", Math.random),
        clock: { now: () => 1, elapsed: () => 1, after: () => new Promise(() => undefined) },
      });
      const other = makeRunner({ dbName, locks, openChannel: open, clock: fastClock(20) });
      const liar = open(hostChannelName(dbName));
      const lying = liar.messages$.subscribe((message) => {
        if ((message as LockMessage).type === "stop") liar.post({ ...(message as LockMessage), type, from: "nobody" });
      });
      onTestFinished(() => lying.unsubscribe());
      frozen.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") });
      // Both events of its agent: whoever appends reads the request.
      await vi.waitFor(async () => expect(await other.getRunEvents("r")).toHaveLength(2), PATIENCE);
      expect(await other.stop({ threadId: "t", runId: "r" })).toBe(true);
      await vi.waitFor(async () => expect(await other.isRunning({ threadId: "t" })).toBe(false), PATIENCE);
      await expectFree(other);
    });
  }
});
